"""Options that say what the columns of CSV, Parquet and Arrow files are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeGuard

import click

from streamkernel.blobs import is_url
from streamkernel.cli.grouped_help import section_option
from streamkernel.cli.options import as_one, stack
from streamkernel.table.schema import MISSING_POLICIES, UNKNOWN_POLICIES, Schema
from streamkernel.type_aliases import Fields

COLUMNS = "Columns of files"

# What a table's first rows decide for all later ones.
OF_SCHEMA = ("schema", "categories", "dates", "missing", "id")


@dataclass(frozen=True)
class CsvOptions:
    """How CSV is written."""

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"


@dataclass(frozen=True)
class ColumnOptions:
    """What the columns of a source are; the options of `ingest` of these names."""

    target: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    schema: str | None = None
    categories: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    missing: str | None = None
    unknown: str | None = None
    id: str | None = None

    def keywords(self) -> Fields:
        """The keywords of `ingest`; a schema that a store or a model carries is read.

        Raises
        ------
        ParameterError, StoreError
            The store or the model has none.
        """
        return {
            **asdict(self),
            "target": [_name_or_index(each) for each in self.target],
            "keep": self.keep or None,
            "schema": _schema_at(self.schema) if _is_saved(self.schema) else self.schema,
        }


def _is_saved(schema: str | None) -> TypeGuard[str]:
    """Whether the option names a store or a model, and not a file or "auto"."""
    return schema is not None and (is_url(schema) or Path(schema).is_dir())


def _schema_at(place: str) -> Schema:
    # Models load all that a fit needs: a command on plain files does not wait for them.
    from streamkernel.cli.saved_objects import saved_schema

    return saved_schema(place)


def _name_or_index(value: str) -> str | int:
    return int(value) if value.lstrip("-").isdigit() else value


def _many(flag: str, help: str, metavar: str = "NAME") -> Any:
    return section_option(COLUMNS, flag, multiple=True, metavar=metavar, help=f"{help} May be repeated.")


unknown_option = section_option(
    COLUMNS,
    "--unknown",
    type=click.Choice(UNKNOWN_POLICIES),
    default=None,
    help="What becomes of a category that the rows of the fit have not: an error, or no category. [default: refuse; "
    "with --schema auto, ignore]",
)

target_of_file = section_option(
    COLUMNS,
    "--target",
    multiple=True,
    metavar="NAME|INDEX",
    help="The column of a file that is the target, where it has another name than in the fit. May be repeated, in the "
    "order of the fit.",
)

column_options = stack(
    _many("--target", "The column that is the target y; several are numbers.", "NAME|INDEX"),
    _many("--drop", "Leave a column out; it may hold anything."),
    _many("--keep", "Leave all others out but target, weights and id."),
    section_option(
        COLUMNS,
        "--schema",
        metavar="FILE|STORE|MODEL|auto",
        default=None,
        help="What each column is: a JSON or TOML file, or the store or model whose rows had the same columns; auto: "
        "what a look at the first rows suggests. [default: all columns are numbers]",
    ),
    _many("--categories", "A column of categories: one-hot, or with more than 32 the mean target of each."),
    _many("--dates", "A column of dates: elapsed time, and the positions in the year, week and day."),
    section_option(
        COLUMNS,
        "--missing",
        type=click.Choice(MISSING_POLICIES),
        default=None,
        help="What becomes of missing values: an error, the mean or median of the column, or the mean and a column "
        "that tells. [default: refuse; with --schema auto, indicator]",
    ),
    unknown_option,
    section_option(
        COLUMNS, "--id", metavar="NAME", default=None, help="The column that tells which row it is: no feature."
    ),
    as_one("kinds", ColumnOptions),
)

csv_options = stack(
    section_option(
        COLUMNS,
        "--separator",
        metavar="LETTER",
        default=None,
        help="Of CSV: the separator, or tab. [default: comma, semicolon or tab, as found]",
    ),
    section_option(
        COLUMNS,
        "--decimal",
        metavar="LETTER",
        default=".",
        show_default=True,
        help="Of CSV: the decimal point, . or a comma.",
    ),
    section_option(
        COLUMNS,
        "--encoding",
        metavar="NAME",
        default="utf-8",
        show_default=True,
        help="Of CSV: utf-8, latin-1, utf-16, ...",
    ),
    as_one("csv", CsvOptions),
)
