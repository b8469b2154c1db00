"""open_table: any input with rows as a Table, pinned and checked. Data that can be read in place is not copied."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import zarr

from streamkernel.errors import (
    DTypeError,
    EmptyDataError,
    ParameterError,
    ShapeError,
    ShapeMismatchError,
)
from streamkernel.table._lazy_rows import (
    DaskRows,
    dataset_columns,
    feature_names,
    is_dask,
    is_xarray,
    rows_of_variable,
)
from streamkernel.table._sparse_rows import SparseRows, is_sparse, sparse_in_memory
from streamkernel.table.columns import check_distinct, default_names, target_position
from streamkernel.table.frames import (
    arrow_table,
    first_time,
    frame_numbers,
    is_arrow_frame,
    is_dask_frame,
    is_pandas,
    is_rows_frame,
    known_types,
    lazy_numbers,
    names_in,
    refuse_query,
    refuse_unions,
)
from streamkernel.table.rows import ConstantRows, NumpyRows, RowArray, RowReader
from streamkernel.table.statistics import TableStatistics
from streamkernel.table.stored.location import Opened, open_stored, open_zarr_array
from streamkernel.table.table import Table
from streamkernel.table.targets import Targets, labelled_targets, plain_labels
from streamkernel.table.values import DTypeName, check_largest_weight, check_weights, float_dtype, table_dtype, unmasked
from streamkernel.type_aliases import AnyArray, Float, Unchecked
from streamkernel.wording import call, estimator, option


def open_table(
    X: Unchecked,
    y: Unchecked = None,
    *,
    rows: slice | tuple[int, int] | None = None,
    target: str | int | None = None,
    dtype: DTypeName = "keep",
    classify: bool = False,
    multilabel: bool = False,
    weights: Unchecked = None,
    sparse: bool = False,
) -> Table:
    """Open rows, where they are, as a `Table`.

    Parameters
    ----------
    X
        A Table; a NumPy array or an object that NumPy converts to one; a frame of pandas, polars or pyarrow; a Dask
        array or DataFrame; a zarr Array or Group; an xarray Dataset (variables X[, y], or one-dimensional columns) or
        2-d DataArray; or the path of a store (an ingested one, a Zarr group with X[, y], or a bare 2-d array).
    y
        Targets (m,) or (m, d), of any of these kinds, where X does not contain them.
    rows
        Half-open row range (A, B) or slice, as numbered in the whole input.
    target
        Name or index of the column of a DataFrame or Dataset that is y.
    dtype
        "keep" (float32 and float64 stay, float16 becomes float32, integers and bool float64), "float32", "float64".
    classify
        y holds class labels (text or whole numbers): Y of the blocks is one-hot, `Table.classes` the sorted labels.
    multilabel
        Several columns of labels are taken too: each is a label that a row has (1) or has not (0). Y of the blocks has
        these columns, and `Table.classes` is None.
    weights
        Weights (m,) of the rows, at least 0, of any of these kinds, or one number for all rows: a row counts as if it
        stood w_i times. By default those of an ingested store that has some (`Table.without_weights` leaves them out).
    sparse
        Whether X may be sparse: a matrix of SciPy, or a store with sparse rows. Blocks hold such rows in pairs of
        columns and values (`Table.sparse`); without this, sparse rows are refused.

    Raises
    ------
    DataError, StoreError, ResourceLimitError
        An error of the input that its metadata shows, before any block is read.
    """
    if isinstance(X, Table):
        _check_sparse(X.features, sparse)
        return _reopen(X, y, rows, target, dtype, classify, multilabel, weights)
    found = _features(X, target)
    _check_sparse(found.X, sparse)
    if y is not None:
        if found.y is not None and target is not None:
            raise ParameterError("y is given twice, as y and by target; leave one out")
        found.y, found.target_names, found.classes, found.coded = *_target_rows(y, classify), None, False
    _check_shapes(found.X, found.y)
    columns, named = found.columns or default_names(found.X.shape[1]), bool(found.columns) and found.named
    if named:
        check_distinct(columns, "X")
    table = Table(
        features=found.X,
        dtype=found.X.dtype if found.X.in_pairs else table_dtype(found.X.dtype, dtype, "X"),
        columns=columns,
        start=0,
        stop=found.X.n_rows,
        targets=_targets(found, classify, multilabel),
        weights=found.w if weights is None else _weights(weights, found.X.shape),
        statistics=None if weights is not None else _statistics(found.statistics, y, classify),
        named=named,
        schema=found.schema,
        ids=found.ids,
    )
    return table if rows is None else table.slice(*_range(rows, table.n_rows))


def _reopen(
    table: Table,
    y: Unchecked,
    rows: slice | tuple[int, int] | None,
    target: str | int | None,
    dtype: DTypeName,
    classify: bool,
    multilabel: bool,
    weights: Unchecked,
) -> Table:
    """A Table with other rows, dtype, classes, targets or weights."""
    if target is not None:
        raise ParameterError("target cannot be chosen again for a Table; give it where the table is opened first")
    targets = table.targets
    if y is not None:
        y_rows, names = _target_rows(y, classify)
        _check_shapes(table.features, y_rows)
        targets = labelled_targets(y_rows, names, multilabel=multilabel) if classify else Targets(y_rows, names)
    if classify and targets is None:
        raise ParameterError("a classifier needs targets; give y")
    if classify and targets is not None and targets.classes is None and not (multilabel and targets.indicators):
        targets = labelled_targets(targets.rows, targets.names, multilabel=multilabel)
    opened = replace(
        table,
        dtype=table.dtype if dtype == "keep" or table.sparse else table_dtype(table.features.dtype, dtype, "X"),
        targets=targets,
        weights=table.weights if weights is None else _weights(weights, table.features.shape),
        statistics=None if weights is not None else _statistics(table.statistics, y, classify),
        weight_column=table.weight_column if weights is None else None,
        keys=None,
    )
    return opened if rows is None else opened.slice(*_range(rows, table.features.n_rows))


def _statistics(stored: TableStatistics | None, y: Unchecked, classify: bool) -> TableStatistics | None:
    """The stored statistics, which are of the stored weights and targets: with other numbers as targets there are none.

    Labels have no statistics; those of the features then stay.
    """
    if stored is None or y is None:
        return stored
    return TableStatistics(stored.X, None) if classify else None


def _check_sparse(X: RowArray, accepted: bool) -> None:
    """Refuse sparse rows where nothing can be done with them."""
    if isinstance(X, SparseRows) and not accepted:
        m, d = X.shape
        raise ParameterError(
            f"X is sparse ({m} x {d}, {X.entries} entries), which estimators such as {estimator('KernelRidge')} take, "
            f"and not this; give dense rows (X.toarray(), or {option('sparse', False)} of {call('ingest')})"
        )


def _features(X: Unchecked, target: str | int | None) -> Opened:
    if is_xarray(X) and type(X).__name__ == "Dataset":
        return Opened(*dataset_columns(X, target))
    if _is_pandas(X) and X.ndim == 1:
        raise ShapeError(f"X is a Series of shape {X.shape}; give a DataFrame (to_frame() makes one column)")
    if is_rows_frame(X) or is_dask_frame(X):
        return _from_frame(X, target)
    opened = _opened(X, "X")
    if target is not None and target not in opened.target_names:
        raise ParameterError(
            f"target={target!r} chooses a column of a DataFrame or Dataset; here give y, or ingest with "
            f"{option('target')}"
        )
    return opened


def _opened(value: Unchecked, name: str) -> Opened:
    """X or y from a place, or from an array of any library."""
    refuse_query(value)
    if isinstance(value, (str, os.PathLike)):
        return open_stored(value, name)
    if isinstance(value, (zarr.Array, zarr.Group)):
        return open_zarr_array(value, name)
    if name == "X" and is_sparse(value):
        return Opened(sparse_in_memory(value))
    if is_xarray(value):
        return Opened(rows_of_variable(value, name), feature_names(value))
    return Opened(DaskRows(value, name) if is_dask(value) else NumpyRows(_as_array(value, name), name))


def _target_rows(y: Unchecked, classify: bool) -> tuple[RowArray, tuple[str, ...]]:
    """y as rows, and the names of its columns."""
    if classify and (isinstance(y, (list, tuple, np.ndarray)) or (_is_pandas(y) and y.ndim == 1 and y.name is None)):
        y = plain_labels(y)
    if isinstance(y, Table):
        raise ParameterError("y cannot be a Table; give an array or a path")
    if is_xarray(y) and type(y).__name__ == "Dataset":
        raise ParameterError("y cannot be a Dataset; give a DataArray")
    name = str(getattr(y, "name", None) or "") if is_xarray(y) or _is_pandas(y) else ""
    # Times beside other values have no array of NumPy; one column of labels is checked as labels.
    if is_rows_frame(y) and (not classify or (len(names_in(y)) > 1 and first_time(y) is not None)):
        y = frame_numbers(y, range(len(names_in(y))), "leave it out, or give numbers")
    rows = _opened(_column(y, "y"), "y").X
    if len(rows.shape) not in (1, 2):
        raise ShapeError(f"y has shape {rows.shape}; give one target per row (m,) or several (m, d)")
    if rows.width == 1:
        return rows, (name or "y",)
    return rows, tuple(f"{name or 'y'}{index}" for index in range(rows.width))


def _targets(found: Opened, classify: bool, multilabel: bool) -> Targets | None:
    if found.y is None:
        if classify:
            raise ParameterError(f"a classifier needs targets; ingest the table with {option('target')}, or give y")
        return None
    names = found.target_names or ("y",)
    if len(names) != found.y.width:
        names = tuple(f"{names[0]}{index}" for index in range(found.y.width))
    if found.classes is None and classify:
        return labelled_targets(found.y, names, multilabel=multilabel)
    return Targets(found.y, names, found.classes, found.coded)


def _check_shapes(X: RowArray, y: RowArray | None) -> None:
    if len(X.shape) != 2:
        raise ShapeError(
            f"X has shape {X.shape}; a table is 2-d (rows, columns): reshape(-1, 1) makes one column of a vector"
        )
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise EmptyDataError(
            f"X has shape {X.shape}: no {'rows' if X.shape[0] == 0 else 'columns'}; give at least one row and one "
            "column"
        )
    if y is not None and y.shape[:1] != X.shape[:1]:
        raise ShapeMismatchError(f"X has shape {X.shape} and y has shape {y.shape}; give one target per row of X")
    if y is not None and y.width == 0:
        raise EmptyDataError(f"y has shape {y.shape}: no columns; give at least one target")


def _as_array(value: Unchecked, name: str) -> AnyArray:
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise DTypeError(f"{name} is a sparse matrix; sparse input is not supported: give {name}.toarray()")
    value = unmasked(value, name)
    try:
        values = np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"{name} is not a rectangular array ({error}); give rows of one length") from error
    if values.dtype.kind == "O" and name == "X":
        raise DTypeError("X holds Python objects (dtype object); give real numbers (float, integer or bool)")
    return values


def _column(values: Unchecked, name: str) -> Unchecked:
    """Values of a column of pandas, polars or Arrow in types that NumPy knows; anything else unchanged.

    Raises
    ------
    DTypeError
        It is a union of Arrow.
    """
    refuse_query(values)
    refuse_unions(values, name)
    found = known_types(values)
    return found.to_numpy() if _is_pandas(found) else found


def _is_pandas(value: Unchecked) -> bool:
    return is_pandas(value) and type(value).__name__ in ("DataFrame", "Series")


def _from_frame(frame: Unchecked, target: str | int | None) -> Opened:
    """A frame of pandas, polars, pyarrow or Dask, of which `target` is y."""
    names = [str(name) for name in names_in(frame)]
    position = None if target is None else target_position(names, target, "column")
    features = [index for index in range(len(names)) if index != position]
    way = "leave it out, encode it as numbers, or name it as target"
    X: RowArray
    if is_dask_frame(frame):
        X = DaskRows(lazy_numbers(frame, features, way), "X")
    else:
        X = NumpyRows(frame_numbers(frame, features, way), "X")
    # As in scikit-learn, only text is a name.
    named = all(isinstance(name, str) for name in names_in(frame))
    opened = Opened(X, tuple(names[index] for index in features), named=named)
    if position is not None:
        if is_arrow_frame(frame):
            y = arrow_table(frame).column(position)
        else:
            y = frame.iloc[:, [position]]
            y = (y.compute() if is_dask_frame(frame) else y).iloc[:, 0]
        opened.y = NumpyRows(_as_array(_column(y, "y"), "y"), "y")
        opened.target_names = (names[position],)
    return opened


def _weights(weights: Unchecked, shape: tuple[int, ...]) -> RowArray | None:
    """w as rows, for X of this shape; those in memory are checked now, others block by block as they are read."""
    if weights is None:
        return None
    if isinstance(weights, Table):
        raise ParameterError("weights cannot be a Table; give an array or a path")
    if isinstance(weights, (int, float, np.integer, np.floating)):
        return _same_weight(float(weights), shape[0])
    rows = _opened(_column(weights, "weights"), "weights").X
    if rows.shape != shape[:1]:
        raise ShapeMismatchError(
            f"weights have shape {rows.shape} and X has shape {shape}; give one weight per row of X"
        )
    float_dtype(rows.dtype, "weights")
    if not rows.in_memory:
        return rows
    values = np.array(RowReader(rows).read(0, rows.n_rows), dtype=np.float64)
    check_weights(values, 0, rows.where)
    check_largest_weight(values.max(initial=0.0), len(values))
    return NumpyRows(values, "weights")


def weights_in_memory(weights: Unchecked, shape: tuple[int, ...]) -> Float | None:
    """Row weights of any kind that `open_table` takes, for X of this shape, as a checked array (m,)."""
    rows = _weights(weights, shape)
    if rows is None:
        return None
    values = np.array(RowReader(rows).read(0, rows.n_rows), dtype=np.float64)
    if not rows.in_memory:
        check_weights(values, 0, rows.where)
    return values


def _same_weight(weight: float, n_rows: int) -> RowArray | None:
    """One weight for all rows; None for 1, which is that of rows without weights."""
    check_weights(np.array([weight]), 0, lambda row: "the number that was given for all rows")
    check_largest_weight(weight, n_rows)
    return None if weight == 1.0 else ConstantRows(weight, n_rows, "weights")


def _range(rows: slice | tuple[int, int], n_rows: int) -> tuple[int, int]:
    if isinstance(rows, slice):
        if rows.step not in (None, 1):
            raise ParameterError(f"rows must be consecutive, got a step of {rows.step}")
        first = 0 if rows.start is None else rows.start
        last = n_rows if rows.stop is None else rows.stop
        first, last = (value + n_rows if isinstance(value, int) and value < 0 else value for value in (first, last))
    elif isinstance(rows, (tuple, list)) and len(rows) == 2:
        first, last = rows
    else:
        raise ParameterError(f"{option('rows')} must be (A, B) or a slice, not {rows!r}", value=rows)
    for value in (first, last):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise ParameterError(f"{option('rows')} must be whole numbers, not {rows!r}", value=rows)
    return int(first), int(last)
