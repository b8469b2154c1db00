"""A whole output of ours: its kind, from its own marker and format name, and the keys that we wrote in it.

Every kind has ``COMPLETE``, written last, and a Zarr group whose attribute ``format`` is ours; a bundle also has
``config.json``. The arrays that COMPLETE lists, with the grids in their own metadata, determine which chunks may
exist. Any other file among them is somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from streamkernel.atomic import parsed_json
from streamkernel.manifest import BUNDLE_FORMAT, COMPLETE, ROWS_FORMAT, TABLE_FORMAT
from streamkernel.type_aliases import Fields

Kind = Literal["model", "factor", "checkpoint", "rows", "factor rows", "table"]

# Name of each kind in messages.
WORDS: dict[str, str] = {
    "model": "a saved model or state",
    "factor": "the basis of a factor",
    "checkpoint": "a checkpoint",
    "rows": "an output of rows",
    "factor rows": "the rows of a factor",
    "table": "a table",
}

# A factor is a folder with two outputs, which have these names.
FACTOR_PARTS = ("basis", "rows")
# The parts, and what their builders have beside them.
_OF_FACTOR = re.compile(rf"({'|'.join(FACTOR_PARTS)})|\.+({'|'.join(FACTOR_PARTS)})\.[^.]+(\.(partial|new|former))?")

_CONFIG, _GROUP = "config.json", "zarr.json"
_INDEX = re.compile(r"0|[1-9]\d{0,17}")
_WRONG = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)


def is_of_factor(name: str) -> bool:
    """Whether an entry of this name, in a factor's folder, is of the factor: not so `rows.zarr`."""
    return _OF_FACTOR.fullmatch(name) is not None


@dataclass(frozen=True)
class CompleteOutput:
    """Kind of an output, its files, and the number of possible chunks along each axis of each of its arrays."""

    kind: Kind
    files: frozenset[str]
    arrays: dict[str, tuple[int, ...]]

    def owns(self, key: str) -> bool:
        """Whether a file or object of this name is one that we write."""
        name, _, rest = key.partition("/")
        if not rest:
            return key in self.files
        counts = self.arrays.get(name)
        if counts is None:
            return False
        return rest == _GROUP or ((indices := self._indices(rest, counts)) is not None and len(indices) == len(counts))

    def owns_folder(self, key: str) -> bool:
        """Whether a folder of this name is one that we make."""
        name, _, rest = key.partition("/")
        counts = self.arrays.get(name)
        if counts is None:
            return False
        return not rest or ((indices := self._indices(rest, counts)) is not None and len(indices) < len(counts))

    @staticmethod
    def _indices(rest: str, counts: tuple[int, ...]) -> list[int] | None:
        """The indices in a chunk key, 3 and 0 in ``c/3/0``; None if no such chunk, or folder of chunks, can exist."""
        first, *parts = rest.split("/")
        if first != "c" or len(parts) > len(counts) or not all(map(_INDEX.fullmatch, parts)):
            return None
        indices = list(map(int, parts))
        return indices if all(i < count for i, count in zip(indices, counts, strict=False)) else None


def read_complete(read: Callable[[str], bytes | None]) -> CompleteOutput | None:
    """The output whose files `read` returns by name; None if it is not ours or not whole."""
    try:
        manifest = _object(read(COMPLETE))
        attributes = _object(read(_GROUP))["attributes"]
        written = manifest["format"], attributes["format"]
        names = tuple(manifest["arrays"])
        files = {COMPLETE, _GROUP}
        if written == (BUNDLE_FORMAT, BUNDLE_FORMAT):
            header = _object(read(_CONFIG))
            if header["format"] != BUNDLE_FORMAT:
                return None
            files.add(_CONFIG)
            kind = output_kind(header["kind"])
        elif written == (TABLE_FORMAT, TABLE_FORMAT):
            kind = "table"
        elif written == (TABLE_FORMAT, ROWS_FORMAT):
            kind = "factor rows" if names == ("G",) else "rows"
        else:
            return None
        arrays = {name: _chunks(_object(read(f"{name}/{_GROUP}"))) for name in names}
    except _WRONG:
        return None
    return CompleteOutput(kind, frozenset(files), arrays)


def output_kind(bundle_kind: object) -> Kind:
    """The kind of a bundle's output: models and transformers may replace each other, not a factor or a checkpoint."""
    if bundle_kind == "factor":
        return "factor"
    return "checkpoint" if bundle_kind == "checkpoint" else "model"


def declared_kind(read: Callable[[str], bytes | None]) -> Kind | None:
    """The kind that a group's format name gives, whether the output is whole or not; None if it is not ours."""
    try:
        written = _object(read(_GROUP))["attributes"]["format"]
    except _WRONG:
        return None
    names: dict[str, Kind] = {TABLE_FORMAT: "table", ROWS_FORMAT: "rows", BUNDLE_FORMAT: "model"}
    return names.get(written) if isinstance(written, str) else None


def _object(content: bytes | None) -> Fields:
    value = parsed_json(content or b"")
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def _chunks(metadata: Fields) -> tuple[int, ...]:
    sides = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    return tuple(-(-int(length) // int(side)) for length, side in zip(metadata["shape"], sides, strict=True))
