"""The schema of a source by what the user says of its columns, and by a look at the first rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from streamkernel.errors import DataError, ParameterError, SourceFormatError
from streamkernel.table.ingest.readers.options import SourceOptions, absent_column
from streamkernel.table.ingest.readers.reader import position_of
from streamkernel.table.ingest.readers.streams import ColumnStream
from streamkernel.table.schema import Column
from streamkernel.table.schema.arrow_types import is_text, one_type, words_of_type
from streamkernel.table.schema.schema import Schema, as_schema
from streamkernel.table.schema.suggest import MOST_BYTES, MOST_ROWS, both_orders, date_formats, suggested
from streamkernel.table.schema.values import WrongValueError, categories, texts
from streamkernel.table.values import listed
from streamkernel.type_aliases import Untyped
from streamkernel.wording import option

AUTO = "auto"
# Errors of Arrow where types are not one column.
_NOT_MERGED = (pa.ArrowInvalid, pa.ArrowTypeError)


def declared_schema(stream: ColumnStream, place: str, options: SourceOptions) -> Schema:
    """The schema of the source's columns by the options: as it is given, as a look suggests, or numbers.

    Raises
    ------
    ParameterError
        An option names a column that is not there, or the schema has a feature that the source has not.
    """
    names = stream.names
    targets = [_named(names, each, "target", place) for each in options.targets]
    weight = None if options.weight is None else _named(names, options.weight, "weight", place)
    used = [name for name in (*targets, weight, options.id, *options.categories, *options.dates) if name is not None]
    options.columns_of(names, used, place)
    for what, given in (
        ("categories", options.categories),
        ("dates", options.dates),
        ("id", [] if options.id is None else [options.id]),
    ):
        for each in given:
            if each not in names:
                raise ParameterError(absent_column(place, names, each, what))
    _check_uses(
        place,
        {
            "target": targets,
            "weight": [weight],
            "id": [options.id],
            "categories": options.categories,
            "dates": options.dates,
        },
    )
    looked_at: set[str] = set()  # dates of which a look has told the format already
    if options.schema is None:
        schema = Schema(tuple(Column(name) for name in names))
    elif options.schema == AUTO:
        schema = look_at(stream, place, options, targets)
        looked_at = {column.name for column in schema.columns if column.kind == "date"}
    else:
        schema = as_schema(options.schema)
        # A schema of features alone is that of any rows; what else there is, the options name.
        schema = Schema((*schema.columns, *(Column(each) for each in used if each not in schema.names)))
        absent = [column.name for column in schema.columns if column.is_feature and column.name not in names]
        if absent:
            raise ParameterError(
                f"{place} has no column {absent[0]!r}, which the schema makes a feature; its columns are "
                f"{listed(names, 20)}"
            )
    explicit = options.schema is not None and options.schema != AUTO
    found = Schema(tuple(_by_options(column, stream, options, targets, weight, explicit) for column in schema.columns))
    return _with_formats(found, stream, looked_at)


def _check_uses(place: str, uses: Mapping[str, Sequence[str | None]]) -> None:
    """Refuse a column that options put to two uses."""
    first: dict[str, str] = {}
    for what, given in uses.items():
        for name in given:
            # A target of categories is one of class labels.
            if name is None or (what == "categories" and first.get(name) == "target"):
                continue
            if name in first:
                twice = f"there twice as {option(what)}" if first[name] == what else ""
                raise ParameterError(
                    f"{place}: column {name!r} is {twice or f'given by {option(first[name])} and by {option(what)}'}; "
                    "leave one of them out"
                )
            first[name] = what


def _with_formats(schema: Schema, stream: ColumnStream, looked_at: Collection[str]) -> Schema:
    """The schema with a format for the dates in text that have none, by a look at the first rows."""
    unknown = [
        column
        for column in schema.columns
        if column.kind == "date"
        and column.format is None
        and column.origin is None
        and column.name in stream.names
        and column.name not in looked_at
        and _may_be_text(stream, column.name)
    ]
    if not unknown:
        return schema
    names = [column.name for column in unknown]
    look, _ = _first_rows(stream, names)
    formats = {name: _format_of(name, texts(look.column(name).combine_chunks())[1], stream) for name in names}
    return schema.replaced(replace(column, format=formats[column.name]) for column in unknown)


def _format_of(name: str, labels: Untyped, stream: ColumnStream) -> str | None:
    """The format of dates in text; None for ISO 8601, and for texts that are no dates, which the reader names."""
    forms = date_formats(labels)
    if len(forms) > 1:
        raise SourceFormatError(f"{stream.where(0)}: {both_orders(name, labels[0].as_py(), forms)}")
    return forms[0] if forms else None


def _may_be_text(stream: ColumnStream, name: str) -> bool:
    kind = stream.arrow_type(name)
    return kind is None or is_text(kind)


def _by_options(
    column: Column,
    stream: ColumnStream,
    options: SourceOptions,
    targets: Sequence[str],
    weight: str | None,
    explicit: bool,
) -> Column:
    """A column of the schema with what the options say of it."""
    name = column.name
    if name in targets:
        if column.role == "target" and (column.kind == "category" or name not in options.categories):
            return column
        return Column(
            name,
            "category" if name in options.categories or stream.has_text(name) else "number",
            "target",
            missing_values=column.missing_values,
        )
    if name == weight:
        return Column(name, "number", "weight")
    if name == options.id:
        return Column(name, "text", "id")
    in_use = column.role == "feature"
    if name in options.drop or (options.keep is not None and in_use and name not in options.keep):
        return Column(name, "text")
    if (column.role == "target" and targets) or (column.role == "weight" and weight is not None):
        return Column(name, "text")  # another column has its role
    if name in options.categories and column.kind != "category":
        column = Column(
            name, "category", missing=column.missing, missing_values=column.missing_values, unknown=column.unknown
        )
    if name in options.dates and column.kind != "date":
        column = Column(name, "date", missing=column.missing, missing_values=column.missing_values)
    if column.is_feature:
        if options.missing is not None and (not explicit or column.missing == "refuse"):
            column = replace(column, missing=options.missing)
        if options.unknown is not None and column.kind == "category":
            column = replace(column, unknown=options.unknown)
    return column


def look_at(stream: ColumnStream, place: str, options: SourceOptions, targets: Collection[str]) -> Schema:
    """The schema that the first rows suggest."""
    names = [name for name in stream.names if name not in options.drop]
    look, whole = _first_rows(stream, names)
    found = suggested(
        look,
        place,
        targets=list(targets),
        id_name=options.id,
        decimal=options.csv.decimal,
        separator=stream.separator,
        whole=whole,
    )
    left = {*stream.names} - {*names}
    by_name = {column.name: column for column in found.columns}
    return Schema(tuple(Column(name, "text") if name in left else by_name[name] for name in stream.names))


def _first_rows(stream: ColumnStream, names: Sequence[str]) -> tuple[Untyped, bool]:
    """An Arrow table of the first rows of some columns, and whether these are all rows."""
    parts, rows, size, whole = [], 0, 0, True
    for batch, _ in stream.batches(names, names):
        parts.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= MOST_ROWS or size >= MOST_BYTES:
            whole = False
            break
    if not parts:
        raise DataError(f"{stream.where(0)}: there are no rows; give at least one")
    return _joined(parts, stream).slice(0, MOST_ROWS), whole


def _joined(parts: Sequence[Untyped], stream: ColumnStream) -> Untyped:
    """An Arrow table of record batches, which may have other dictionaries, and of other files other types."""
    try:
        return _concatenated([pa.table(part) for part in parts])
    except _NOT_MERGED:
        names = parts[0].schema.names
        return pa.table([_one_column([part.column(name) for part in parts], name, stream) for name in names], names)


def _concatenated(tables: Sequence[Untyped]) -> Untyped:
    return pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()


def _one_column(parts: Sequence[Untyped], name: str, stream: ColumnStream) -> Untyped:
    """The parts of a column as one column.

    Raises
    ------
    SourceFormatError
        Two parts cannot be one column: of numbers and durations, or of text and lists.
    """
    with suppress(*_NOT_MERGED):
        return _concatenated([pa.table({name: part}) for part in parts]).column(0)
    kind = one_type([part.type for part in parts])
    try:
        if kind is not None:
            return pa.chunked_array([_as_type(part, kind) for part in parts])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, WrongValueError):
        pass
    places: dict[str, str] = {}  # of the first rows of each type
    row = 0
    for part in parts:
        if not pa.types.is_null(part.type):
            places.setdefault(words_of_type(part.type), stream.where(row))
        row += len(part)
    if len(places) == 1:
        return pa.chunked_array([pa.nulls(row)])  # lists of several types, of which nothing is read
    (first, place), (other, there) = list(places.items())[:2]
    raise SourceFormatError(
        f"{there}: column {name!r} holds {other}, and in {place} {first}; give rows of one type, or leave the column "
        f"out by {option('drop', [name])}"
    )


def _as_type(column: Untyped, kind: Untyped) -> Untyped:
    if is_text(kind) and not is_text(column.type):
        codes, labels = categories(column)
        return labels.take(pa.array(codes, mask=codes < 0)).cast(kind)
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return column.cast(kind, safe=False)  # beyond 2^53 whole numbers are rounded


def _named(names: Sequence[str], wanted: str | int, name: str, place: str) -> str:
    """Name of the column that an option gives, by its name or its index."""
    return names[position_of(names, wanted, name, place)]
