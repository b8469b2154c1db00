"""The base class of the records: one reader and one writer of JSON objects for all of them.

A record class lists its fields with their types::

    class Rows(Record):
        start: int
        stop: int
        named: bool = False         a field with a default may be absent

`from_config` checks every field once, and an error names the field. Three rules keep the digest of a file when it is
written again: a field that was absent stays absent, a field that is not known is kept, and a whole number stays one
where a number is expected. Libraries that convert JSON into classes break one of them or another.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, dataclass_transform

from streamkernel.errors import ModelFormatError
from streamkernel.records._fields import Reader, reader_of_fields
from streamkernel.records.json_types import JsonObject

_NOTHING: JsonObject = {}


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Record:
    """Base of the records: an immutable object, whose fields are the annotations of its class.

    An instance has the fields that were given; those with a default that were not are read from the class, and are not
    written. This is not a dataclass: the methods of one are compiled when its module is imported, and there are 45.
    """

    _readers: ClassVar[dict[str, Reader]]
    _unknown: JsonObject

    def __init_subclass__(cls, *, kw_only: bool = True) -> None:
        """`kw_only` is False for records whose values may be given without their names."""
        super().__init_subclass__()

    def __init__(self, *values: Any, **named: Any) -> None:
        readers = self.fields()
        given = {**dict(zip(readers, values, strict=False)), **named}
        if len(given) != len(values) + len(named) or not given.keys() <= readers.keys():
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(readers)}, not {', '.join(given)}")
        for name in readers:
            if name not in given and not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} needs the field {name}")
        self.__dict__.update(given)
        self.__dict__["_unknown"] = _NOTHING

    @classmethod
    def fields(cls) -> dict[str, Reader]:
        """The reader of each field, by name."""
        if "_readers" not in cls.__dict__:
            cls._readers = reader_of_fields(cls)
        return cls._readers

    @classmethod
    def from_config(cls, config: object, where: str = "") -> Self:
        """Read a JSON object.

        Parameters
        ----------
        where : its place in the file, such as ``rounds[3]``; "" for the whole.

        Raises
        ------
        ModelFormatError
            A field is missing, or has a wrong type or value; the message names it.
        """
        if not isinstance(config, dict):
            raise ModelFormatError(f"its {_named(where)} is {config!r:.60}, not an object")
        readers, values = cls.fields(), {}
        for name, reader in readers.items():
            place = f"{where}.{name}" if where else name
            if name in config:
                values[name] = reader(config[name], place)
            elif not hasattr(cls, name):
                raise ModelFormatError(f"it lacks the {_named(place)}")
        record = cls.__new__(cls)
        record.__dict__.update(values)
        record.__dict__["_unknown"] = {name: value for name, value in config.items() if name not in readers}
        return record

    def to_config(self) -> JsonObject:
        """The JSON object: fields that were given or read, then those that are not known."""
        known = {name: _written(value) for name, value in self.__dict__.items() if name != "_unknown"}
        return {**known, **self._unknown}

    def changed(self, **values: Any) -> Self:
        """A record with other values of some fields."""
        record = type(self)(
            **{name: value for name, value in {**self.__dict__, **values}.items() if name != "_unknown"}
        )
        record.__dict__["_unknown"] = self._unknown
        return record

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set; see Record.changed")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_config() == other.to_config()

    __hash__ = None  # type: ignore[assignment]  # some fields are dicts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.to_config().items())})"


def _named(place: str) -> str:
    return f"field {place}" if place else "configuration"


def _written(value: object) -> object:
    if isinstance(value, Record):
        return value.to_config()
    if isinstance(value, tuple):
        # As one list where there is no record in it: a table may have 100,000 columns.
        nested = any(issubclass(kind, Record | tuple) for kind in set(map(type, value)))
        return [_written(each) for each in value] if nested else list(value)
    return value
