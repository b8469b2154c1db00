"""Readers of the fields of a record, made from their types.

Types are bool, int, float (which takes whole numbers and leaves them whole), str, `JsonObject`, a Literal, a
record, ``tuple[T, ...]``, ``tuple[A, B]``, unions of these, and numbers with a range (``Annotated[int, AtLeast(0)]``).
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from streamkernel.errors import ModelFormatError
from streamkernel.records.json_types import AtLeast, JsonObject

# Takes a JSON value and its place in the file, and returns the value of the field.
Reader: TypeAlias = Callable[[object, str], Any]

# Numbers of 64 bits: larger ones would overflow where they meet arrays.
_LARGEST = 2**63
_SCALARS: dict[object, tuple[str, tuple[type, ...]]] = {
    bool: ("true or false", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a finite number", (float, int)),
    str: ("text", (str,)),
    type(None): ("null", (type(None),)),
}


def reader_of_fields(cls: type) -> dict[str, Reader]:
    """A reader for each annotated field of a class; for those that are private or of the class, none."""
    hints = get_type_hints(cls, include_extras=True)
    return {
        name: _reader(kind)
        for name, kind in hints.items()
        if not name.startswith("_") and get_origin(kind) is not ClassVar
    }


def _reader(kind: object) -> Reader:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _SCALARS:
        return _scalar(kind)
    if kind == JsonObject:
        return _object
    if origin is Annotated:
        return _ranged(_reader(arguments[0]), arguments[1:])
    if origin is Literal:
        return _choice(arguments)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is tuple:
        return _list(arguments[0]) if arguments[-1] is Ellipsis else _fixed(arguments)
    assert isinstance(kind, type)
    found: Reader = kind.from_config  # type: ignore[attr-defined]  # a record
    return found


def _scalar(kind: object) -> Reader:
    words, allowed = _SCALARS[kind]

    def read(value: object, where: str) -> object:
        # Strict types: no text is a number; and no truth value either, though bool is a subclass of int.
        if not isinstance(value, allowed) or (kind is not bool and isinstance(value, bool)) or not _within(value):
            raise _wrong(value, where, words)
        return value

    return read


def _within(value: object) -> bool:
    if isinstance(value, int):
        return -_LARGEST <= value < _LARGEST
    return not isinstance(value, float) or math.isfinite(value)


def _object(value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise _wrong(value, where, "an object")
    return value


def _ranged(reader: Reader, limits: tuple[AtLeast, ...]) -> Reader:
    def read(value: object, where: str) -> object:
        found = reader(value, where)
        for limit in limits:
            if found < limit.least:
                raise _wrong(value, where, f"a number >= {limit.least:g}")
        return found

    return read


def _choice(allowed: tuple[object, ...]) -> Reader:
    words = "one of " + ", ".join(map(repr, allowed)) if len(allowed) > 1 else repr(allowed[0])

    def read(value: object, where: str) -> object:
        if not isinstance(value, str) or value not in allowed:
            raise _wrong(value, where, words)
        return value

    return read


def _union(members: tuple[object, ...]) -> Reader:
    """The first member that takes the value. Of one that is null or something else, the other one's error is raised."""
    others = [_reader(member) for member in members if member is not type(None)]
    null = len(others) < len(members)

    def read(value: object, where: str) -> object:
        if null and value is None:
            return None
        for reader in others[:-1]:
            try:
                return reader(value, where)
            except ModelFormatError:
                continue
        return others[-1](value, where)

    return read


def _list(kind: object) -> Reader:
    reader, allowed = _reader(kind), _SCALARS.get(kind, ("", ()))[1]

    def read(value: object, where: str) -> object:
        if not isinstance(value, list | tuple):
            raise _wrong(value, where, "a list")
        # Names and scales of 100,000 columns are checked at once.
        if allowed and set(map(type, value)).issubset(allowed) and all(map(_within, value)):
            return tuple(value)
        return tuple([reader(each, f"{where}[{position}]") for position, each in enumerate(value)])

    return read


def _fixed(kinds: tuple[object, ...]) -> Reader:
    readers = [_reader(kind) for kind in kinds]

    def read(value: object, where: str) -> object:
        if not isinstance(value, list | tuple) or len(value) != len(readers):
            raise _wrong(value, where, f"a list of {len(readers)}")
        pairs = zip(readers, value, strict=True)
        return tuple([reader(each, f"{where}[{position}]") for position, (reader, each) in enumerate(pairs)])

    return read


def _wrong(value: object, where: str, words: str) -> ModelFormatError:
    return ModelFormatError(f"its field {where} is {value!r:.60}, not {words}")
