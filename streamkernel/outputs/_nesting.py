"""No output is made inside of another one: it would be a foreign key there, which makes that one's replacement fail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamkernel.atomic import parsed_json
from streamkernel.blobs import Generations, parent_of
from streamkernel.errors import CorruptMetadataError, ParameterError, StoreExistsError
from streamkernel.outputs.complete import FACTOR_PARTS, WORDS, declared_kind, read_complete
from streamkernel.outputs.files import read_small

_GROUP = "zarr.json"


def refuse_inside(target: str | Path) -> None:
    """Refuse a path or URL that lies in an output of ours, whole or not, or in a Zarr array of anybody.

    Raises
    ------
    StoreExistsError
    """
    part = str(target).rpartition("/")[2].lstrip(".").partition(".")[0] in FACTOR_PARTS
    places: Sequence[str | Path] = target.parents if isinstance(target, Path) else _prefixes(target)
    for depth, around in enumerate(places):
        found = _words_for(around)
        # A factor's folder is no Zarr group itself. Of the nearest folder only: each costs a request at a URL.
        if depth == 0 and found is None and not part and _is_factor(around):
            found = "a factor"
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


def _is_factor(place: str | Path) -> bool:
    """Whether a whole factor's basis is in a place."""
    basis = place / FACTOR_PARTS[0] if isinstance(place, Path) else f"{place}/{FACTOR_PARTS[0]}"
    whole = read_complete(lambda name: _content(basis, name))
    return whole is not None and whole.kind == "factor"


def _words_for(place: str | Path) -> str | None:
    content = _content(place, _GROUP)
    if content is None:
        return None
    kind = declared_kind(lambda name: content)
    if kind is not None:
        return WORDS[kind]
    try:
        return "a Zarr array" if parsed_json(content)["node_type"] == "array" else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _content(place: str | Path, name: str) -> bytes | None:
    try:
        if isinstance(place, Path):
            return read_small(place / name)
        return Generations(place).read(name)
    except (PermissionError, CorruptMetadataError):
        return None  # whoever may write to a place need not be allowed to look around it
