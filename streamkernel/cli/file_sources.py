"""CSV, Parquet and Arrow files, and folders of them, where a command wants a store: they are ingested on the way.

The table is there for as long as the command runs. CSV from the standard input (``-``) counts as a file.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from streamkernel.blobs import is_url
from streamkernel.cli.column_options import ColumnOptions, CsvOptions
from streamkernel.cli.options import Resources
from streamkernel.cli.output import Display
from streamkernel.cli.progress import IngestBar
from streamkernel.errors import ParameterError
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.saved import SavedModel
from streamkernel.outputs import TemporaryFolder
from streamkernel.table import open_table
from streamkernel.table.columns import NO_WEIGHTS, default_position
from streamkernel.table.schema import Schema
from streamkernel.table.stored.location import lacks_rows
from streamkernel.type_aliases import Fields, Unchecked

_PLAIN = CsvOptions()
_OF_FIT = "such options are those of the fit: fit the model again with them"


@contextlib.contextmanager
def rows_of_model(
    model: SavedModel,
    source: str,
    resources: Resources,
    display: Display,
    *,
    targets: bool,
    target: Sequence[str] = (),
    weight: str | None = None,
    unknown: str | None = None,
    csv: CsvOptions = _PLAIN,
    dtype: str = "keep",
) -> Iterator[tuple[str, str | None]]:
    """The store with rows for a model, and the column of row weights that is still to be named.

    A store is used as it is. A file is copied to the temporary folder: only the columns of the model, found by name,
    and with `targets` its target; other columns may hold anything. Numbers keep all their digits, unless `dtype` is
    another one. `target` are the names or indices of the targets in the file, where these are not those of the fit.

    Raises
    ------
    ParameterError
        The sweeps run on a cluster that may not see this machine's files, or a column is missing.
    DataError, StoreError
        As of `ingest`.
    """
    if not _is_file(source):
        _refuse_for_store(source, {"target": target, "unknown": unknown, **_changed(csv)})
        yield source, weight
        return
    _check_place(source, resources)
    known = model.record.target_names if isinstance(model, PredictingModel) and model.SUPERVISED else ()
    if target and len(target) != len(known):
        raise ParameterError(
            f"--target is given {len(target)} times, and the targets of the model are {', '.join(known) or 'none'}; "
            "name one column for each, in this order"
        )
    if model.record.table_schema is not None:
        schema = schema_of_model(model, targets=targets)
        if target and tuple(target) != (in_schema := schema_of_model(model, targets=True).targets):
            raise ParameterError(
                f"--target {target[0]}: the columns of the model have a schema, in which the target is "
                f"{', '.join(in_schema)}; give a file with that name, without --target"
            )
        with _ingested(
            source,
            display,
            target=list(schema.targets),
            weight=weight,
            of_model=True,
            schema=schema,
            unknown=unknown,
            dtype=dtype,
            **asdict(csv),
        ) as place:
            yield place, _left(weight)
        return
    if unknown is not None:
        raise ParameterError("--unknown is of categories, and the model was fitted to numbers; leave it out")
    # Of a file with a header x1, x2, ... these are names, too.
    named = model.known_columns.named
    known = tuple(target) or known
    y = known if targets else ()
    with contextlib.nullcontext(source) if named else _copied(source, display) as rows:
        keep = model.column_names if named else _beside_targets(model, rows, known, csv)
        of_features = {"target": list(y) or None, "keep": keep, "dtype": dtype}
        with _ingested(rows, display, weight=weight, of_model=True, **of_features, **asdict(csv)) as place:
            if y and not target and not named and default_position(y[0]) is not None:
                _check_unnamed(model, source, place, y[0])
            if not y and not named:
                _check_width(model, source, place, known)
            yield place, _left(weight)


def _beside_targets(
    model: SavedModel, rows: Unchecked, targets: Sequence[str], csv: CsvOptions
) -> Sequence[str] | None:
    """The features of a file for a model of columns without names, where its targets and weights are there, too.

    In a file without a header x3 is the place of the target. None where all columns are features, or their number is
    another one, which is refused later.
    """
    from streamkernel.table.ingest import names_in
    from streamkernel.table.ingest.readers.reader import position_of

    names, of_source = names_in(rows, **asdict(csv))
    apart = {*targets, model.record.weight_column}
    for each in targets:
        with contextlib.suppress(ParameterError):  # a column that is not there is refused later
            apart.add(names[position_of(names, each, "target", "")])
    features = [name for name in names if name not in apart]
    if len(features) == len(names) or len(features) != len(model.column_names):
        return None
    # A header of x3 may name another column.
    mistakable = any(name in names and default_position(name) is not None for name in apart)
    return None if of_source and mistakable and {*features} != {*model.column_names} else features


def _check_width(model: SavedModel, source: str, place: str, targets: Sequence[str]) -> None:
    """Refuse a file that has as many columns more than a model without names of columns as this has targets."""
    width, ours = len(open_table(place).columns), len(model.column_names)
    if targets and width == ours + len(targets):
        raise ParameterError(
            f"{source} has {width} columns, and the model was fitted to {ours} columns without names; name those that "
            "are targets by --target, or give a file without them"
        )


def _check_unnamed(model: SavedModel, source: str, place: str, target: str) -> None:
    """Refuse a file with a header for a model whose target is a column without a name: x3 would be another column."""
    found = open_table(place)
    if found.named and sorted(found.columns) != sorted(model.column_names):
        raise ParameterError(
            f"the model was fitted to columns without names, of which {target} is the target, and {source} has a "
            "header; give a file without one, or fit the model to a file with this header"
        )


@contextlib.contextmanager
def rows_of_update(
    model: PredictingModel,
    source: str,
    resources: Resources,
    display: Display,
    *,
    target: Sequence[str] = (),
    weight: str | None,
    as_new: bool,
    unknown: str | None,
    csv: CsvOptions,
) -> Iterator[tuple[str, str | None]]:
    """As `rows_of_model`, with targets, for an update, which recognises the rows of a file that the fit has seen.

    Raises
    ------
    ParameterError
        Rows of a file cannot be recognised, as the fit had other mean targets for its own rows, and `as_new` does not
        say that none was seen; the rows of the fit had weights, and those of the file are not named; or as of
        `rows_of_model`.
    """
    record = model.record
    if _is_file(source):
        schema = None if record.table_schema is None else schema_of_model(model, targets=True)
        means = [] if schema is None else [each.name for each in schema.columns if each.means is not None]
        if means and not as_new:
            raise ParameterError(
                f"the mean targets of {', '.join(map(repr, means))} in a row of the fit leave out its own target, so "
                f"that rows of {source} that the fit has seen cannot be told from new ones; give --as-new if all rows "
                "of the file are new, or append them to the table of the fit by streamkernel ingest --append, and "
                "update from it"
            )
        named = record.weight_column if schema is None else schema.weight
        total = getattr(record.totals, "weight", None)
        if (
            weight is None
            and named is None
            and record.class_weights is None
            and total not in (None, record.totals.rows)
        ):
            raise ParameterError(
                f"the rows of the fit had weights; name the column of {source} that has those of its rows by --weight, "
                f"or give --weight {NO_WEIGHTS} to count each once"
            )
        weight = weight or (record.weight_column if schema is None else None)
    with rows_of_model(
        model,
        source,
        resources,
        display,
        targets=True,
        target=target,
        weight=weight,
        unknown=unknown,
        csv=csv,
        dtype=record.dtype,
    ) as given:
        yield given


def _left(weight: str | None) -> str | None:
    """`none` where the weights that a schema names must not count; `ingest` has seen to the other choices."""
    return weight if weight == NO_WEIGHTS else None


def schema_of_model(model: SavedModel, *, targets: bool) -> Schema:
    """The schema of the rows that a model was fitted to, with or without its targets and row weights."""
    schema = Schema.from_config(model.record.table_schema, "the schema of the model")
    return schema if targets else schema.of_features()


@contextlib.contextmanager
def rows_of_fit(
    source: str,
    resources: Resources,
    display: Display,
    *,
    weight: str | None,
    kinds: ColumnOptions,
    csv: CsvOptions,
) -> Iterator[tuple[str, str | None]]:
    """The store with rows for a fit, and the column of row weights that is still to be named.

    A store is itself. Files are ingested as by `ingest` with the same options; a fit that resumes ingests them again,
    to the same bits.

    Raises
    ------
    ParameterError
        Options of files for a store, or as of `rows_of_model`.
    DataError, StoreError
        As of `ingest`.
    """
    if not _is_file(source):
        _refuse_for_store(source, {**asdict(kinds), **_changed(csv)})
        yield source, weight
        return
    _check_place(source, resources)
    with _ingested(source, display, weight=weight, **kinds.keywords(), **asdict(csv)) as place:
        yield place, _left(weight)


def _changed(csv: CsvOptions) -> Fields:
    return {name: value for name, value in asdict(csv).items() if value != getattr(_PLAIN, name)}


def _refuse_for_store(source: str, given: Fields) -> None:
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise ParameterError(
            f"--{wrong[0]} is for a file as STORE, and {source} is none; leave it out, or make a store of files by "
            f"streamkernel ingest {source} STORE"
        )


def refuse_file(source: str, why: str) -> None:
    """Refuse a file for a command that needs a store.

    Raises
    ------
    ParameterError
        `source` is a CSV, Parquet or Arrow file.
    """
    if _is_file(source):
        raise ParameterError(
            f"{source} is a file, and {why}; make a store by streamkernel ingest {source} STORE, where the workers can "
            "read it, and give that"
        )


def _is_file(source: str) -> bool:
    """Whether a source is files with columns, or the standard input.

    Raises
    ------
    ParameterError
        It is a file of arrays, or a Zarr group of other names, of which a store is made first.
    """
    # Readers of files load pyarrow, which takes a while: a command on a store does not wait for them.
    if is_url(source):
        return False
    of_others = lacks_rows(source)
    if not of_others and (Path(source) / "zarr.json").exists():
        return False
    from streamkernel.table.ingest import choice_of_arrays, is_file_of_arrays, is_file_of_columns, is_standard_input

    if of_others or is_file_of_arrays(source):
        what = (
            f"the Zarr group {source} has no array X" if of_others else f"{source} is no store and no table of columns"
        )
        store = f"{Path(source).stem}{'-rows' if of_others else ''}.zarr"
        names = [part for name, array in choice_of_arrays(source).items() for part in (f"--{name}", array)]
        command = shlex.join(["streamkernel", "ingest", source, store, *names])
        raise ParameterError(f"{what}; make a store by {command}, and give {store}")
    return is_standard_input(source) or is_file_of_columns(source)


def _check_place(source: str, resources: Resources) -> None:
    if not resources.scheduler.here:
        raise ParameterError(
            f"{source} is read by this process, and the sweeps run on {resources.scheduler.address}; ingest it to a "
            "place that the workers can read, and give that"
        )


@contextlib.contextmanager
def _copied(source: str, display: Display) -> Iterator[Unchecked]:
    """The source, or a copy of the standard input, which is read more than once."""
    from streamkernel.table.ingest import received

    with contextlib.ExitStack() as stack:
        with IngestBar(display.quiet) as bar:
            rows = stack.enter_context(received(source, None, bar))
        yield rows


@contextlib.contextmanager
def _ingested(
    source: Unchecked, display: Display, *, weight: str | None, of_model: bool = False, **options: Unchecked
) -> Iterator[str]:
    from streamkernel.table.ingest import columns_settled, ingest

    with TemporaryFolder() as folder:
        place = str(folder / "rows")
        with contextlib.ExitStack() as stack:
            bar = stack.enter_context(IngestBar(display.quiet))
            if of_model:
                stack.enter_context(columns_settled(_OF_FIT))
            # `none` leaves out weights that a schema names, once they are stored.
            ingest(source, place, weight=None if weight == NO_WEIGHTS else weight, **options, progress=bar)
        yield place
