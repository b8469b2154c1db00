"""Plain JSON values: which values a configuration may hold, how they are read, and how two of them differ."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from streamkernel.atomic import parsed_json, read_file
from streamkernel.errors import CorruptMetadataError, ParameterError, ResourceLimitError

__all__ = ["differences", "plain", "read_json", "read_object"]

# A model's configuration has kilobytes, with 100,000 columns 10 MB; parsed, it takes twenty times its bytes in memory.
_MAX_JSON_BYTES = 64 * 2**20


def plain(value: Any, where: str = "config") -> Any:
    """`value` as JSON can hold it: NumPy scalars and arrays become numbers and lists, tuples become lists.

    Raises
    ------
    ParameterError
        NaN, infinity, or a type that JSON cannot hold; the message names the field: ``config.scaler.mean[3]``.
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ParameterError(f"{where} is {value}, which JSON cannot hold; use None, or store it in an array")
        return float(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ParameterError(f"{where} has the key {key!r}; keys must be text")
        return {str(key): plain(entry, f"{where}.{key}") for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, f"{where}[{i}]") for i, entry in enumerate(value)]
    raise ParameterError(
        f"{where} is a {type(value).__name__}, which JSON cannot hold; use numbers, text, lists, dicts"
    )


def read_json(path: Path) -> tuple[Any, str]:
    """The value in a JSON file, and its text.

    Raises
    ------
    CorruptMetadataError
        The file is empty, truncated, not UTF-8, contains NaN, or is nested too deeply.
    """
    size = path.stat().st_size
    if size > _MAX_JSON_BYTES:
        raise ResourceLimitError(
            f"{path} has {size} bytes, more than the {_MAX_JSON_BYTES} allowed for metadata; it is not one of our files"
        )
    try:
        text = read_file(path).decode("utf-8")
        return parsed_json(text, parse_constant=_refuse_constant), text
    except (ValueError, RecursionError) as error:
        what = "empty" if size == 0 else f"not valid JSON ({str(error) or type(error).__name__})"
        raise CorruptMetadataError(f"{path} is {what}; restore it from a copy or write the store again") from error


def read_object(path: Path) -> tuple[dict[str, Any], str]:
    """Like `read_json`, for a file that must hold an object: ``[]`` and ``null`` count as corrupt too."""
    value, text = read_json(path)
    if not isinstance(value, dict):
        raise CorruptMetadataError(
            f"{path} holds a {type(value).__name__}, not an object; restore it from a copy or write the store again"
        )
    return value, text


def differences(ours: Any, theirs: Any, where: str = "") -> Iterator[str]:
    """One line for each field in which two plain values differ: ``solver.alpha: 0.1 there, 0.2 here``."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            place = f"{where}.{key}" if where else key
            if key not in ours:
                yield f"{place}: {_short(theirs[key])} there, absent here"
            elif key not in theirs:
                yield f"{place}: absent there, {_short(ours[key])} here"
            else:
                yield from differences(ours[key], theirs[key], place)
    elif type(ours) is not type(theirs) or ours != theirs:
        yield f"{where or 'config'}: {_short(theirs)} there, {_short(ours)} here"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
