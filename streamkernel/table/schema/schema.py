"""The columns of a source together, and their file."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamkernel.atomic import json_content
from streamkernel.errors import DataError, ParameterError, StoreExistsError, StoreNotFoundError
from streamkernel.notebook import html_table
from streamkernel.outputs import check_new_file, new_file, translated_os_errors
from streamkernel.table.schema._column import Column
from streamkernel.table.values import listed
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import option, switch

FORMAT, VERSION = "streamkernel.schema", 1
_SUFFIXES = (".json", ".toml")
# Fields on which the meaning of a feature rests, beside its name.
_MEANINGS = {"kind": "another kind", "unit": "another unit", "origin": "another origin", "means": "other mean targets"}


@dataclass(frozen=True)
class Schema:
    """What each column of a source is.

    Attributes
    ----------
    columns
        In the order of their features.

    Raises
    ------
    ParameterError
        Two columns have one name, or two are the weight or the id.
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        names: set[str] = set()
        for column in self.columns:
            if column.name in names:
                raise ParameterError(f"{column} is there twice in the schema; leave one out")
            names.add(column.name)
        for role in ("weight", "id"):
            if len(self._of_role(role)) > 1:
                raise ParameterError(f"columns {listed(self._of_role(role))} are all the {role}; choose one")

    def _of_role(self, role: str) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.role == role)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the source."""
        return tuple(column.name for column in self.columns)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the targets."""
        return self._of_role("target")

    @property
    def weight(self) -> str | None:
        """Name of the column of row weights."""
        return next(iter(self._of_role("weight")), None)

    @property
    def id(self) -> str | None:
        """Name of the column that tells which row it is."""
        return next(iter(self._of_role("id")), None)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features of a complete schema."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def complete(self) -> bool:
        """Whether all features are known without a look at the rows."""
        return all(column.complete for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def of_features(self) -> Schema:
        """It without the columns that are targets or row weights, which rows to predict need not have."""
        return Schema(tuple(column for column in self.columns if column.role not in ("target", "weight")))

    def check_features_of(self, other: Schema, place: str, made: str) -> None:
        """Refuse rows of another schema whose features have the same names and another meaning.

        Fills may differ: each table has its own mean.

        Parameters
        ----------
        place : name of the rows with the other schema, for the message.
        made : name of the rows with this schema, such as "the rows of the model".

        Raises
        ------
        DataError
            A column has another unit, origin, or other target means.
        """
        theirs = {column.name: column for column in other.columns}
        for column in self.columns:
            found = theirs.get(column.name)
            if found is None or not column.is_feature or found.features != column.features:
                continue  # names of features are compared elsewhere
            for field, words in _MEANINGS.items():
                wanted, has = getattr(column, field), getattr(found, field)
                if wanted != has:
                    shown = "" if field == "means" else f": {has!r}, and not {wanted!r}"
                    raise DataError(
                        f"{place}: {column} has {words} than in {made}{shown}; predict on the files themselves, which "
                        "are read by the schema of the model, or append them to the table of the fit"
                    )

    def replaced(self, columns: Iterable[Column]) -> Schema:
        """The same schema with these columns in place of those of their names."""
        by_name = {column.name: column for column in columns}
        return Schema(tuple(by_name.get(column.name, column) for column in self.columns))

    def to_config(self) -> Fields:
        """Plain JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "columns": [column.to_config() for column in self.columns],
        }

    @classmethod
    def from_config(cls, config: Unchecked, place: str = "the schema") -> Schema:
        """The schema in a JSON object, or in the content of a TOML file.

        Raises
        ------
        ParameterError
            It is no schema, or of a later version.
        """
        if not isinstance(config, dict) or not isinstance(config.get("columns"), (list, tuple)):
            raise ParameterError(f"{place} is no schema: it needs a list `columns`, each with a name and a kind")
        if config.get("format", FORMAT) != FORMAT or config.get("version", VERSION) != VERSION:
            raise ParameterError(
                f"{place} is {config.get('format')!r} of version {config.get('version')!r}, and this streamkernel "
                f"reads {FORMAT!r} of version {VERSION}; write it again"
            )
        extra = {*config} - {"format", "version", "columns"}
        if extra:
            raise ParameterError(f"{place} has a field {min(extra)!r}, which a schema has not; leave it out")
        return cls(tuple(Column.from_config(each, place) for each in config["columns"]))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Schema:
        """The schema in a JSON or TOML file, by its suffix.

        Raises
        ------
        ParameterError, StoreNotFoundError
            There is no file, or it holds something else.
        """
        place = checked_suffix(path)
        try:
            content = place.read_text(encoding="utf-8")
            found = json.loads(content) if place.suffix.lower() == ".json" else tomllib.loads(content)
        except FileNotFoundError:
            raise StoreNotFoundError(f"there is no schema at {place}; check the path") from None
        except (ValueError, RecursionError) as error:
            raise ParameterError(f"{place} is no {place.suffix[1:].upper()} ({str(error)[:200]}); mend it") from None
        return cls.from_config(found, str(place))

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write it as a JSON or TOML file, by the suffix; whole or not at all.

        Raises
        ------
        ParameterError, StoreExistsError, StoreNotFoundError
            The suffix is another one, something is there, the folder does not exist, or is in an output.
        """
        place = check_schema_output(path, overwrite=overwrite)
        text = json_content(self.to_config()) if place.suffix.lower() == ".json" else self.to_toml().encode()
        with (
            translated_os_errors(place, "writing", "nothing was left behind"),
            new_file(place, overwrite=overwrite) as partial,
        ):
            partial.write_bytes(text)

    def to_toml(self) -> str:
        """It as TOML, a table for each column."""
        config = self.to_config()
        lines = [f"{name} = {_toml(config[name])}" for name in ("format", "version")]
        for column in config["columns"]:
            lines += ["", "[[columns]]", *(f"{name} = {_toml(value)}" for name, value in column.items())]
        return "\n".join(lines) + "\n"

    def _repr_html_(self) -> str:
        return html_table(
            "Schema",
            {column.name: f"{column.role}, {column.kind}" for column in self.columns},
        )


def as_schema(value: Unchecked) -> Schema:
    """A schema of itself, of plain JSON, or of a file.

    Raises
    ------
    ParameterError, StoreNotFoundError
        As of `Schema.read`.
    """
    if isinstance(value, Schema):
        return value
    if isinstance(value, (str, os.PathLike)):
        return Schema.read(value)
    if isinstance(value, Sequence):
        return Schema.from_config({"columns": value})
    return Schema.from_config(value)


def checked_suffix(path: str | os.PathLike[str]) -> Path:
    """The path of a schema's file.

    Raises
    ------
    ParameterError
        The suffix is neither .json nor .toml.
    """
    place = Path(path)
    if place.suffix.lower() not in _SUFFIXES:
        if place.is_dir():
            raise ParameterError(
                f"{place} is a folder, not the JSON or TOML file of a schema; that of a store is "
                "open_table(path).schema, that of a model TableEncoder.of(model).schema"
            )
        raise ParameterError(
            f"{place}: the file of a schema is named .json or .toml; choose another name, or "
            f"{option('schema', 'auto')} for a look at the rows"
        )
    return place


def check_schema_output(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """The path of a schema's file that may be written; asked before a look at the rows, too.

    Raises
    ------
    ParameterError, StoreExistsError, StoreNotFoundError
        As of `Schema.write`.
    """
    place = checked_suffix(path)
    if overwrite and place.exists():
        # Only a file of ours is ever replaced, so that a mistyped path costs no data.
        Schema.read(place)
    check_new_file(place.absolute())
    if not overwrite and os.path.lexists(place):
        raise StoreExistsError(f"{place} exists; choose another path or {switch('overwrite')}")
    if not place.absolute().parent.is_dir():
        raise StoreNotFoundError(f"the folder {place.absolute().parent} for {place.name} does not exist; make it first")
    return place


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # TOML's strings are those of JSON, but for the letter DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)
