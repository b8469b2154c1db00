"""streamkernel ingest SOURCE... STORE"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from streamkernel.blobs import is_url
from streamkernel.cli.column_options import OF_SCHEMA, ColumnOptions, CsvOptions, column_options, csv_options
from streamkernel.cli.options import common, overwrite
from streamkernel.cli.output import Display
from streamkernel.cli.progress import IngestBar
from streamkernel.errors import ParameterError
from streamkernel.table import TableInfo
from streamkernel.table.ingest import REPEATED_POLICIES, append_rows, ingest, suggest_schema
from streamkernel.table.schema import Column, check_schema_output
from streamkernel.type_aliases import Fields, Unchecked

_MOST_NAMES = 30


def _weight(value: str | None) -> str | int | None:
    return value if value is None or not value.lstrip("-").isdigit() else int(value)


def _refuse(options: Fields, other: str, why: str) -> None:
    """Refuse options that have no effect beside another one."""
    for name, value in options.items():
        if value is not None and value is not False and value != ():
            raise ParameterError(f"{name} means nothing with {other}: {why}; leave it out")


def _check_last(sources: tuple[str, ...], store: str) -> None:
    """Refuse a file of rows in the place of the store, where a pattern of the shell took the last argument."""
    if not is_url(store) and Path(store).is_file():
        raise ParameterError(f"the last argument is the store, and {store} is a file; name the new store after it")


@click.command("ingest")
@click.argument("sources", metavar="SOURCE...", nargs=-1)
@click.argument("store")
@column_options
@click.option("--weight", metavar="NAME|INDEX", help="The column of row weights: a row of weight w counts w times.")
@click.option("--X", "features", metavar="NAME", help="Of NPZ and Zarr: the array that is X. [default: X]")
@click.option("--y", "targets", metavar="NAME", help="Of NPZ and Zarr: the array that is y. [default: y, if there]")
@csv_options
@click.option(
    "--sparse/--dense",
    default=None,
    help="Of libsvm: store only the entries of rows, or all numbers. [default: sparse with more than 1000 columns, of "
    "which less than 5% are entries]",
)
@click.option(
    "--columns", type=click.IntRange(min=1), metavar="N", help="Of libsvm: the number of columns. [default: as found]"
)
@click.option("--chunk-rows", type=int, default=None, help="The number of rows of a chunk. [default: about 8 MiB]")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float64", "keep"]),
    default=None,
    help="The dtype of X. [default: float32]",
)
@click.option("--shuffle", is_flag=True, help="Store the rows in a random order, so that slices are random splits.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=None, help="The seed of the random order of --shuffle. [default: 0]"
)
@click.option(
    "--suggest-schema",
    "suggest",
    is_flag=True,
    help="Write what a look at the first rows suggests to the file STORE (.toml or .json; - prints it), and no table.",
)
@click.option("--append", is_flag=True, help="Append the rows to the table at STORE.")
@click.option(
    "--repeated",
    type=click.Choice(REPEATED_POLICIES),
    default=None,
    help="What becomes of the very rows of an earlier --append: an error, nothing (so that a job may be run again), or "
    "they are appended once more. [default: refuse]",
)
@overwrite
@common
def command(
    sources: tuple[str, ...],
    store: str,
    kinds: ColumnOptions,
    weight: str | None,
    features: str | None,
    targets: str | None,
    csv: CsvOptions,
    sparse: bool | None,
    columns: int | None,
    chunk_rows: int | None,
    dtype: Unchecked,
    shuffle: bool,
    seed: int | None,
    suggest: bool,
    append: bool,
    repeated: str | None,
    overwrite: bool,
    display: Display,
) -> None:
    """Stream SOURCE (csv, parquet, arrow, npz, npy, libsvm text, Zarr) into a Zarr table at STORE, in bounded memory.

    The last argument is STORE. Several SOURCEs, a folder or a pattern in quotes ('part-*.csv') are CSV, Parquet or
    Arrow files with the same columns.

    All columns are numbers, but for a target of text. --schema auto takes tables as they come: categories, dates, and
    missing values; --suggest-schema writes what it would do, to be changed and given as --schema FILE.
    """
    if not sources:
        # click would say that the source is missing, which was given and was taken for the store.
        raise click.UsageError(
            f"one path was given, {store}, and two are needed: what is read, and the store that is made, such as "
            "rows.csv rows.zarr"
        )
    source = sources[0] if len(sources) == 1 else list(sources)
    stored: Fields = {
        "--sparse": sparse,
        "--dense": sparse is False,
        "--columns": columns,
        "--chunk-rows": chunk_rows,
        "--dtype": dtype,
        "--shuffle": shuffle,
        "--seed": seed,
    }
    if suggest:
        why = "it looks at the columns of a file, and stores no rows"
        _refuse(
            {"--append": append, "--repeated": repeated, "--X": features, "--y": targets, **stored},
            "--suggest-schema",
            why,
        )
        if store == "-":
            _refuse({"--overwrite": overwrite}, "--suggest-schema to -", "the schema is printed")
        _suggest(source, store, kinds, csv, weight, display, overwrite=overwrite)
        return
    _check_last(sources, store)
    if append:
        of_schema = {f"--{name}": getattr(kinds, name) for name in OF_SCHEMA}
        _refuse({**stored, "--overwrite": overwrite, **of_schema}, "--append", "the rows are stored as the table's are")
    else:
        if repeated is not None:
            raise ParameterError("--repeated is of --append: a new table has no earlier rows; leave it out")
        if seed is not None and not shuffle:
            raise ParameterError(
                "--seed is of --shuffle: without it the rows keep the order of the source; leave it out, or give "
                "--shuffle too"
            )
    given: Fields = {
        **kinds.keywords(),
        **asdict(csv),
        "weight": _weight(weight),
        "X": features,
        "y": targets,
    }
    with IngestBar(display.quiet) as bar:
        if append:
            info = append_rows(
                source,
                store,
                **{name: given[name] for name in given if name not in OF_SCHEMA},
                repeated=repeated or "refuse",
                progress=bar,
            )
        else:
            info = ingest(
                source,
                store,
                **given,
                sparse=sparse,
                columns=columns,
                chunk_rows=chunk_rows,
                dtype=dtype or "float32",
                shuffle=shuffle,
                seed=seed or 0,
                overwrite=overwrite,
                progress=bar,
            )
    result = {**asdict(info), "left_out": list(info.left_out)}
    names = ("path", "rows", "features", "columns", "target_names", "chunk_rows", "chunks", "bytes_stored", "seconds")
    shown = {name: result[name] for name in names} | {"columns": _listed(info.columns), "target": _target_of(info)}
    del shown["target_names"]
    if info.appended is not None:
        shown["appended"] = info.appended or "no rows: they were appended before"
    if info.weight is not None:
        shown["weight"] = info.weight
    if info.entries is not None:
        shown["stored"] = f"sparse: {info.entries} entries of rows of {info.features} columns"
    if info.left_out:
        shown["left out"] = "; ".join(info.left_out)
    display.emit(result, "table", shown)


def _suggest(
    source: str | list[str],
    place: str,
    kinds: ColumnOptions,
    csv: CsvOptions,
    weight: str | None,
    display: Display,
    *,
    overwrite: bool,
) -> None:
    """Write or print the schema that a look at the rows suggests."""
    if place != "-":
        check_schema_output(place, overwrite=overwrite)
    with IngestBar(display.quiet) as bar:
        found = suggest_schema(source, **{**kinds.keywords(), **asdict(csv)}, weight=_weight(weight), progress=bar)
    if place == "-":
        if display.as_json:
            display.emit(found.to_config(), "schema")
        else:
            sys.stdout.write(found.to_toml())
        return
    found.write(place, overwrite=overwrite)
    shown = {column.name: _described(column) for column in found.columns}
    display.emit({"schema": place, **found.to_config()}, "schema", {"schema": place, **shown})


def _described(column: Column) -> str:
    what = column.kind if column.role == "feature" else f"{column.role} ({column.kind})"
    return "text, left out" if what == "text" else what


def _listed(names: Sequence[str]) -> str:
    """Names for display: all names of a narrow table, the first ones and the last of a wide one."""
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMES - 1])}, ..., {names[-1]}"


def _target_of(info: TableInfo) -> str:
    if info.classes is not None:
        return f"{info.target_names[0]} (labels of {len(info.classes)} classes)"
    return _listed(info.target_names) or "none: every column is a feature"
