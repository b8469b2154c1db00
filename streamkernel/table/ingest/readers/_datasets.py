"""Datasets of xarray, in memory or in a Zarr store: variables X, y and weights, or columns along one dimension."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from zarr.abc.store import Store

from streamkernel.errors import ParameterError, ShapeError, SourceFormatError
from streamkernel.table.ingest.readers._tables import TableReader
from streamkernel.table.ingest.readers.options import SourceOptions
from streamkernel.table.ingest.readers.reader import Reader
from streamkernel.table.open import open_table
from streamkernel.table.values import listed
from streamkernel.type_aliases import Untyped
from streamkernel.wording import option


def stored_dataset(store: Store, path: str, place: str) -> Untyped:
    """The Dataset in a group of a Zarr store, as xarray decodes it; no values are read.

    Raises
    ------
    ParameterError
        xarray is not installed.
    SourceFormatError
        It cannot read the group: a dimension has no name, for one.
    """
    try:
        xarray = import_module("xarray")
    except ImportError:  # pragma: no cover - the extra is part of the development environment
        raise ParameterError(f"{place} is a Dataset of xarray: pip install 'streamkernel[xarray]'") from None
    try:
        return xarray.open_zarr(store, group=path or None, chunks=None, consolidated=False)
    except (KeyError, TypeError, ValueError) as error:
        why = str(error.args[0] if error.args else error).splitlines()[0][:200]
        raise SourceFormatError(
            f"{place} is no Dataset that xarray reads ({why}); write it by Dataset.to_zarr"
        ) from error


def dataset_reader(dataset: Untyped, options: SourceOptions, place: str) -> Reader:
    """The rows of a Dataset; `Reader.left_out` lists the variables that are no part of them.

    Raises
    ------
    ParameterError, ShapeError
        There is no such variable, or the variables do not make one table.
    """
    whole = "X" in dataset.data_vars and dataset["X"].ndim == 2
    chosen = options.X is not None or options.y is not None
    if chosen or (whole and options.target in (None, "y")):
        return _arrays_reader(dataset, options, place)
    if not whole and len({dataset[name].dims for name in dataset.data_vars}) > 1:
        raise ShapeError(
            f"{place} has variables along several dimensions, {_described(dataset)}; name one of two dimensions by "
            f"{option('X')}, and its targets by {option('y')}"
        )
    labelled = options.target in dataset.data_vars and _is_text(dataset[options.target])
    table = open_table(dataset, target=options.target, classify=labelled)
    reader = TableReader(table, None, options.weight, place)
    reader.left_out = _left_out(dataset, list(dataset.data_vars))
    return reader


def _arrays_reader(dataset: Untyped, options: SourceOptions, place: str) -> Reader:
    """The rows of a variable X of two dimensions, with variables y and weights."""
    X, y, target = options.X or "X", options.y, options.target
    if y is None and target in (None, "y") and X != "y" and "y" in dataset.data_vars:
        y, target = "y", None
    for name in (X, *([] if y is None else [y])):
        if name not in dataset.variables:
            raise ParameterError(f"{place}: there is no variable {name!r}; it has {_described(dataset)}")
    weight = options.weight if isinstance(options.weight, str) and options.weight in dataset.variables else None
    table = open_table(
        dataset[X],
        None if y is None else dataset[y],
        weights=None if weight is None else dataset[weight],
        classify=y is not None and _is_text(dataset[y]),
    )
    reader = TableReader(table, target, None if weight else options.weight, place, weight or "w")
    reader.left_out = _left_out(dataset, [X, y, weight])
    return reader


def _is_text(variable: Untyped) -> bool:
    return variable.dtype.kind in "UTO"


def _left_out(dataset: Untyped, used: Sequence[str | None]) -> tuple[str, ...]:
    """The variables that a table does not have, as text; names of columns are in it."""
    features = dataset[used[0]].dims[1:] if used and dataset[used[0]].ndim == 2 else ()
    return tuple(
        f"{'coordinate' if name in dataset.coords else 'variable'} {str(name)!r}"
        for name in dataset.variables
        if name not in used and name not in features
    )


def _described(dataset: Untyped) -> str:
    return listed((f"{name} ({', '.join(map(str, dataset[name].dims))})" for name in dataset.variables), 10)
