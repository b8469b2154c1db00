"""No output is made inside of another one: it would be a stranger there, which makes that one's replacement fail."""

from __future__ import annotations

import json
from pathlib import Path

from streamkernel.blobs import Generations, parent_of
from streamkernel.errors import CorruptMetadataError, ParameterError, StoreExistsError
from streamkernel.outputs.files import read_small
from streamkernel.outputs.whole import WORDS, said_to_be

__all__ = ["refuse_inside"]

_GROUP = "zarr.json"


def refuse_inside(target: str | Path) -> None:
    """Refuse a path or URL that lies in an output of ours, whole or not, or in a Zarr array of anybody.

    Raises
    ------
    StoreExistsError
    """
    for around in target.parents if isinstance(target, Path) else _prefixes(target):
        found = _described(around)
        if found is not None:
            raise StoreExistsError(
                f"{target} cannot be made there: {around} is {found}, and no output is made inside of another one; "
                "choose a path beside it"
            )


def _prefixes(url: str) -> list[str]:
    """What is around a URL, the nearest first; a bucket is no output."""
    found: list[str] = []
    try:
        while True:
            url, _ = parent_of(url)
            parent_of(url)
            found.append(url)
    except ParameterError:
        return found


def _described(place: str | Path) -> str | None:
    content = _metadata(place)
    if content is None:
        return None
    kind = said_to_be(lambda name: content)
    if kind is not None:
        return WORDS[kind]
    try:
        return "a Zarr array" if json.loads(content)["node_type"] == "array" else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _metadata(place: str | Path) -> bytes | None:
    try:
        if isinstance(place, Path):
            return read_small(place / _GROUP)
        output = Generations(place)
        return output.blobs.read(output.latest_or_plain().prefix + _GROUP)
    except (PermissionError, CorruptMetadataError):
        return None  # whoever may write to a place need not be allowed to look around it
