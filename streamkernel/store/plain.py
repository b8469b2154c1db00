"""Plain JSON values: which values a configuration may hold, how they are read, and how two of them differ."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from streamkernel.atomic import parsed_json, read_file
from streamkernel.errors import CheckpointMismatchError, CorruptMetadataError, ParameterError, ResourceLimitError
from streamkernel.type_aliases import Fields, Unchecked

# A model's configuration has kilobytes, with 100,000 columns 10 MB; parsed, it takes twenty times its bytes in memory.
_MAX_JSON_BYTES = 64 * 2**20
_REMEDY = "restore it from a copy or write the store again"
# What `Table.run_pins` has of the chunk files of a table of others.
_CHUNK_TIMES = "chunk_times"
_NO_FLOATS, _FLOATS = {bool, int, str, type(None)}, {float}  # types of JSON, without their subclasses


def plain(value: Unchecked, where: str = "config") -> Any:
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
        # Of 100,000 columns at once: to name the place of each number takes twenty times as long.
        kinds = set(map(type, value))
        if kinds <= _NO_FLOATS or (kinds <= _FLOATS and all(map(math.isfinite, value))):
            return list(value)
        return [plain(entry, f"{where}[{i}]") for i, entry in enumerate(value)]
    raise ParameterError(
        f"{where} is a {type(value).__name__}, which JSON cannot hold; use numbers, text, lists, dicts"
    )


def parse_object(content: bytes, where: str | Path, remedy: str = _REMEDY) -> Fields:
    """The object that a JSON text is, which was read from `where`.

    Raises
    ------
    CorruptMetadataError
        The text is empty, truncated, not UTF-8, contains NaN, is nested too deeply, or is ``[]`` or ``null``.
    """
    try:
        value = parsed_json(content.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        what = f"not valid JSON ({str(error) or type(error).__name__})" if content else "empty"
        raise CorruptMetadataError(f"{where} is {what}", remedy=remedy) from error
    if not isinstance(value, dict):
        raise CorruptMetadataError(f"{where} holds a {type(value).__name__}, not an object", remedy=remedy)
    return value


def read_object(path: Path) -> tuple[Fields, str]:
    """The object in a JSON file, and its text; see `parse_object`."""
    size = path.stat().st_size
    if size > _MAX_JSON_BYTES:
        raise ResourceLimitError(
            f"{path} has {size} bytes, more than the {_MAX_JSON_BYTES} allowed for metadata; it is not one of our files"
        )
    content = read_file(path)
    return parse_object(content, path), content.decode("utf-8")


def require_equal(ours: Unchecked, theirs: Unchecked, what: str) -> None:
    """Raise `CheckpointMismatchError` where the configuration of an earlier run (`theirs`) is not ours."""
    found = list(_differences(ours, theirs))
    if [line.partition(":")[0] for line in found] == [_CHUNK_TIMES] and _CHUNK_TIMES in theirs:
        raise CheckpointMismatchError(
            f"{what} began with a table whose chunks had other sizes or times: it was written again since, or copied "
            "without its times; start without resuming, or restore the table with its times"
        )
    if found:
        raise CheckpointMismatchError(
            f"{what} has another configuration: {'; '.join(found)}; use the same options, or start without resuming"
        )


def _differences(ours: Unchecked, theirs: Unchecked, where: str = "") -> Iterator[str]:
    """One line for each field in which two plain values differ: ``solver.alpha: 0.1 there, 0.2 here``."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            place = f"{where}.{key}" if where else key
            if key not in ours:
                yield f"{place}: {_short(theirs[key])} there, absent here"
            elif key not in theirs:
                yield f"{place}: absent there, {_short(ours[key])} here"
            else:
                yield from _differences(ours[key], theirs[key], place)
    elif type(ours) is not type(theirs) or ours != theirs:
        yield f"{where or 'config'}: {_short(theirs)} there, {_short(ours)} here"


def _short(value: Unchecked) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
