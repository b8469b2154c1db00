"""Rows of Dask arrays and of xarray objects: what is behind them (an array, a file) is sliced, never copied as a whole.

Neither library is imported: a Dask array is what has `.chunks`, slicing and `.compute`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamkernel.atomic import text_digest
from streamkernel.errors import DTypeError, EmptyDataError, ParameterError, ShapeError
from streamkernel.table.columns import target_position
from streamkernel.table.rows import GuidedRows, NumpyRows, RowArray
from streamkernel.table.values import unmasked
from streamkernel.type_aliases import AnyArray, Int, Untyped

_LAZY_CHUNK_BYTES = 1 << 23


def is_dask(value: object) -> bool:
    """True for a Dask array."""
    return type(value).__module__.split(".")[0] == "dask" and hasattr(value, "chunks") and hasattr(value, "compute")


class DaskRows(RowArray):
    """One block of Dask rows at a time, computed in this thread: tasks must not start tasks."""

    def __init__(self, array: Untyped, name: str) -> None:
        if any(not np.isfinite(n) for n in array.shape):
            raise ShapeError(f"the Dask array {name} has unknown chunk sizes; call compute_chunk_sizes() on it first")
        self.name = name
        self.shape = tuple(int(n) for n in array.shape)
        self.dtype = np.dtype(array.dtype)
        self._array = array
        sizes = [int(n) for n in array.chunks[0] if n > 0] if self.shape else []
        self._ends = np.cumsum(sizes, dtype=np.int64)
        self.chunk_rows = max(sizes, default=1)

    @property
    def fingerprint(self) -> str:
        """Digest of the array's name, which Dask derives from its graph, shape and chunks."""
        return text_digest(f"{self._array.name}{self.shape}{self.dtype.str}{self._array.chunks}")

    def chunk_span(self, row: int) -> tuple[int, int]:
        index = int(np.searchsorted(self._ends, row, side="right"))
        return (int(self._ends[index - 1]) if index else 0), int(self._ends[index])

    def cuts(self, start: int, stop: int) -> Int:
        inner = self._ends[(self._ends > start) & (self._ends < stop)]
        return np.concatenate(([start], inner, [stop])).astype(np.int64)

    def where(self, row: int) -> str:
        return f"Dask block {int(np.searchsorted(self._ends, row, side='right'))} of {self.name}"

    def load(self, first: int, last: int) -> AnyArray:
        """Compute one row of blocks."""
        block = self._array[first:last].compute(scheduler="synchronous")
        values = np.asarray(unmasked(block, self.name, self.where(first), first))
        shape = (last - first, *self.shape[1:])
        # Of functions of blocks Dask believes what it is told, or what a block of no rows gave.
        numbers = values.dtype.kind in "fiub" and np.can_cast(values.dtype, self.dtype, "same_kind")
        if values.shape != shape or not (numbers or values.dtype.kind == self.dtype.kind):
            found = type(block).__name__ if values.dtype.kind == "O" and not values.ndim else values.dtype
            raise DTypeError(
                f"{self.where(first)} holds {found} of shape {np.shape(block)}, and the array says {self.dtype} of "
                f"shape {shape}; give the function that makes its blocks the right dtype= and chunks="
            )
        return values.astype(self.dtype, copy=False) if numbers else values


def is_xarray(value: object) -> bool:
    """True for a Dataset or DataArray."""
    return type(value).__module__.split(".")[0] == "xarray" and type(value).__name__ in ("Dataset", "DataArray")


class LazyRows(RowArray):
    """Rows of a DataArray whose values are still in a file (`xarray.open_dataset` without `chunks`)."""

    def __init__(self, array: Untyped, name: str) -> None:
        self.name = name
        self.shape = tuple(int(n) for n in array.shape)
        self.dtype = np.dtype(array.dtype)
        self._array = array
        preferred = array.encoding.get("preferred_chunks") or {}
        # As the file records it, else about 8 MiB of rows.
        stored = array.encoding.get("chunks") or array.encoding.get("chunksizes") or ()
        row_bytes = max(1, self.dtype.itemsize * int(np.prod(self.shape[1:])))
        fallback = max(1, _LAZY_CHUNK_BYTES // row_bytes)
        self.chunk_rows = int(preferred.get(array.dims[0]) or (stored[0] if stored else fallback))

    @property
    def fingerprint(self) -> str:
        """Digest of the variable's metadata: xarray has nothing else of a lazily opened variable."""
        encoding = self._array.encoding
        pinned = [str(encoding.get(key)) for key in ("source", "preferred_chunks", "dtype")]
        return text_digest(f"{self._array.name}{self._array.dims}{self.shape}{self.dtype.str}{pinned}")

    def load(self, first: int, last: int) -> AnyArray:
        """Read one slice; the rest of the variable is not loaded."""
        # `.values` would drop the mask and return the values under it.
        rows = self._array.isel({self._array.dims[0]: slice(first, last)}).load().data
        return np.asarray(unmasked(rows, self.name, start=first))


class ColumnsRows(GuidedRows):
    """Rows assembled chunk by chunk from columns that are separate one-dimensional arrays."""

    def __init__(self, columns: Sequence[RowArray], name: str) -> None:
        # The chunks of the coarsest column; the others are cut to them.
        guide = max(columns, key=lambda column: 0 if column.in_memory else column.chunk_rows)
        super().__init__(guide, name, len(columns), np.result_type(*(column.dtype for column in columns)))
        self._columns = tuple(columns)

    @property
    def fingerprint(self) -> str:
        """Digest of the columns' digests."""
        return text_digest("/".join(column.fingerprint for column in self._columns))

    def chunk_span(self, row: int) -> tuple[int, int]:
        """Rows of the coarsest column's chunk; 1,024 rows in memory, so that columns are never stacked whole."""
        return RowArray.chunk_span(self, row) if self.in_memory else super().chunk_span(row)

    def load(self, first: int, last: int) -> AnyArray:
        """(b, p) from p columns."""
        out = np.empty((last - first, len(self._columns)), dtype=self.dtype)
        for index, column in enumerate(self._columns):
            out[:, index] = column.load(first, last)
        return out


def rows_of_variable(array: Untyped, name: str) -> RowArray:
    """A DataArray as rows, without reading it where it is lazy."""
    if array.chunks is not None and is_dask(array.data):
        return DaskRows(array.data, name)
    return NumpyRows(array.data, name) if _is_in_memory(array) else LazyRows(array, name)


def _is_in_memory(array: Untyped) -> bool:
    # xarray does not tell. Slices of an array in memory are views of it; each slice of a file is an array of its own. A
    # slice of no rows reads nothing.
    if array.ndim == 0:
        return True
    first, second = (array.isel({array.dims[0]: slice(0, 0)}).data for _ in range(2))
    return isinstance(first, np.ndarray) and first.base is not None and first.base is second.base


def dataset_columns(
    dataset: Untyped, target: str | int | None
) -> tuple[RowArray, tuple[str, ...], RowArray | None, tuple[str, ...]]:
    """X, its column names, y and its names from a Dataset with variables X[, y] or with one-dimensional columns."""
    names = [str(name) for name in dataset.data_vars]
    if "X" in names and dataset["X"].ndim == 2:
        if target not in (None, "y"):
            raise ParameterError(
                f"the Dataset has variables X and y; target={target!r} cannot be chosen too (leave it out)"
            )
        y = rows_of_variable(dataset["y"], "y") if "y" in names else None
        return rows_of_variable(dataset["X"], "X"), feature_names(dataset["X"]), y, ("y",)
    if not names:
        raise EmptyDataError("the Dataset has no variables; give X (2-d) and y, or one-dimensional columns")
    shapes = {dataset[name].dims for name in dataset.data_vars}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise ShapeError(
            f"the Dataset's variables have dimensions {sorted(map(str, shapes))}; give X (2-d) and y, or columns "
            "along one dimension"
        )
    for name in dataset.data_vars:
        if str(name) != target and dataset[name].dtype.kind not in "fiub":
            raise DTypeError(
                f"column {name!r} of the Dataset holds {dataset[name].dtype}; leave it out or name it as target"
            )
    chosen = None if target is None else names[target_position(names, target, "variable of the Dataset")]
    features = [name for name in names if name != chosen]
    if not features:
        raise EmptyDataError("the Dataset has no column besides the target; give at least one feature")
    X = ColumnsRows([rows_of_variable(dataset[name], name) for name in features], "X")
    y = None if chosen is None else rows_of_variable(dataset[chosen], "y")
    return X, tuple(features), y, () if chosen is None else (chosen,)


def feature_names(array: Untyped) -> tuple[str, ...]:
    """Names along the second dimension, where it has text coordinates."""
    if array.ndim != 2 or array.dims[1] not in array.coords:
        return ()
    labels = np.asarray(array.coords[array.dims[1]].values)
    return tuple(str(label) for label in labels) if labels.dtype.kind in "UTO" else ()
