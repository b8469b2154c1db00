"""Sparse rows, whose entries alone are held: CSR in three arrays, in memory or in Zarr, read in chunks of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used

from streamkernel.atomic import text_digest
from streamkernel.errors import CorruptChunkError, DTypeError, NonFiniteDataError, NumericRangeError
from streamkernel.pairs import as_csr, pairs_of, values_in
from streamkernel.table._chunk_rows import sparse_chunk_rows
from streamkernel.table.rows import GuidedRows, NumpyRows, RowArray, RowReader
from streamkernel.table.values import not_finite
from streamkernel.type_aliases import AnyArray, AnyDType, Int, Unchecked, Untyped

SPARSE_ARRAYS = ("indptr", "indices", "data", "statistics")  # of a store; the last has those of the columns
_HEADROOM = 8.0  # as in `values`: room for every distance of rows


@dataclass(frozen=True)
class CSRParts:
    """The three arrays of CSR: the entries of row i are those from ``indptr[i]`` to ``indptr[i + 1]``.

    Attributes
    ----------
    indptr : (m + 1,) whole numbers.
    indices, data : (entries,) columns, ascending in each row, and values.
    """

    indptr: RowArray
    indices: RowArray
    data: RowArray


class SparseRows(RowArray):
    """Sparse rows of d columns, shape (m, d), that `load` gives in pairs (`streamkernel.pairs`): (b, 2 w) float64.

    A chunk of rows reads its own slice of the entries.

    Parameters
    ----------
    parts : the arrays.
    n_columns : d.
    most : w, the most entries of a row; at least 1.
    chunk_rows : rows of a chunk.
    """

    in_pairs = True

    def __init__(self, parts: CSRParts, n_columns: int, most: int, chunk_rows: int) -> None:
        self.name, self.dtype = "X", np.dtype(np.float64)
        self.shape = (parts.indptr.n_rows - 1, n_columns)
        self.chunk_rows, self.most = chunk_rows, most
        self.parts = parts
        arrays = (parts.indptr, parts.indices, parts.data)
        self.in_memory, self.proved = all(a.in_memory for a in arrays), all(a.proved for a in arrays)

    @property
    def width(self) -> int:
        """Numbers of a row as it is read."""
        return 2 * self.most

    def with_room(self, most: int) -> SparseRows:
        """The same rows, read with room for so many entries."""
        if most <= self.most:
            return self
        return SparseRows(self.parts, self.shape[1], most, sparse_chunk_rows(most, self.chunk_rows))

    @property
    def entries(self) -> int:
        """Number of entries of all rows."""
        return self.parts.data.n_rows

    def sizes_at(self, row: int) -> dict[str, int]:
        """The lengths of the three arrays of the rows up to `row`."""
        entries = int(RowReader(self.parts.indptr).read(row, row + 1)[0])
        return {"indptr": row + 1, "indices": entries, "data": entries}

    @property
    def fingerprint(self) -> str:
        parts = self.parts
        digests = "/".join(part.fingerprint for part in (parts.indptr, parts.indices, parts.data))
        return text_digest(f"CSR {self.shape[1]}/{digests}")

    def load(self, first: int, last: int) -> AnyArray:
        indptr, indices, data = self.entries_of(first, last)
        return pairs_of(indptr, indices, data, self.most)

    def entries_of(self, first: int, last: int) -> tuple[Int, AnyArray, AnyArray]:
        """(indptr, columns, values) of rows [first, last), checked; the first number of `indptr` is not 0."""
        indptr = RowReader(self.parts.indptr).read(first, last + 1)
        start, stop = int(indptr[0]), int(indptr[-1])
        counts = np.diff(indptr)
        if not 0 <= start <= stop <= self.entries or counts.min() < 0 or counts.max() > self.most:
            raise self._damaged(first, "do not tell which entries are of which row")
        indices, data = (
            (RowReader(part).read(start, stop) if stop > start else np.zeros(0, part.dtype))
            for part in (self.parts.indices, self.parts.data)
        )
        if len(indices):
            rising, borders = np.diff(indices) > 0, indptr[1:-1] - start
            rising[borders[(borders > 0) & (borders < len(indices))] - 1] = True  # from one row to the next
            if not rising.all() or indices.min() < 0 or indices.max() >= self.shape[1]:
                raise self._damaged(first, f"do not rise within 0 and {self.shape[1] - 1}")
        return indptr, indices, data

    def _damaged(self, row: int, what: str) -> CorruptChunkError:
        return CorruptChunkError(
            f"the columns of the entries of sparse rows {what}, in {self.where(row)}; write the store again"
        )

    @property
    def stamp(self) -> str:
        return "".join(part.stamp for part in (self.parts.indptr, self.parts.indices, self.parts.data))

    def where(self, row: int) -> str:
        return self.parts.indptr.where(row)

    def check_unchanged(self) -> None:
        for part in (self.parts.indptr, self.parts.indices, self.parts.data):
            part.check_unchanged()


class DensifiedRows(GuidedRows):
    """Sparse rows as dense ones (m, d), chunk by chunk."""

    def __init__(self, stored: RowArray) -> None:
        super().__init__(stored, stored.name, stored.shape[1], stored.dtype)

    @property
    def fingerprint(self) -> str:
        return text_digest(f"dense {self.guide.fingerprint}")

    def load(self, first: int, last: int) -> AnyArray:
        dense: AnyArray = as_csr(self.guide.load(first, last), self.shape[1]).toarray()
        return dense


class SparsifiedRows(GuidedRows):
    """Dense rows in pairs, chunk by chunk; a row may be full."""

    in_pairs = True

    def __init__(self, stored: RowArray) -> None:
        super().__init__(stored, stored.name, stored.shape[1], np.dtype(np.float64))

    @property
    def width(self) -> int:
        """Numbers of a row as it is read."""
        return 2 * self.shape[1]

    @property
    def fingerprint(self) -> str:
        return text_digest(f"sparse {self.guide.fingerprint}")

    def chunk_span(self, row: int) -> tuple[int, int]:
        # Rows in memory are one chunk, of which twice a copy would be made.
        return RowArray.chunk_span(self, row) if self.guide.in_memory else self.guide.chunk_span(row)

    def load(self, first: int, last: int) -> AnyArray:
        values = self.guide.load(first, last)
        rows, columns = np.nonzero(values)
        indptr = np.searchsorted(rows, np.arange(len(values) + 1))
        return pairs_of(indptr, columns, values[rows, columns], self.shape[1])


def column_dtype(n_columns: int) -> AnyDType:
    """Type of the column numbers of sparse rows."""
    return np.dtype(np.int32 if n_columns < 2**31 else np.int64)


def is_sparse(value: Unchecked) -> bool:
    """Whether a value is a sparse matrix or array of SciPy."""
    return type(value).__module__.startswith("scipy.sparse") and scipy.sparse.issparse(value)


def sparse_in_memory(value: Untyped) -> SparseRows:
    """The rows of a sparse matrix or array of SciPy, of any of its formats; repeated entries are added up.

    Raises
    ------
    DTypeError
        Its values are no real numbers.
    """
    if value.dtype.kind not in "fiub":
        raise DTypeError(f"X is a sparse matrix of dtype {value.dtype}; give real numbers (float, integer or bool)")
    rows = scipy.sparse.csr_array(value)
    if not rows.has_canonical_format or (rows.data == 0).any():
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    counts = np.diff(rows.indptr)
    most = max(1, int(counts.max())) if len(counts) else 1
    # SciPy chooses the types of whole numbers by what else it has seen; equal rows must have one fingerprint.
    indptr, indices = rows.indptr.astype(np.int64, copy=False), rows.indices.astype(column_dtype(rows.shape[1]))
    parts = CSRParts(*(NumpyRows(part, "X") for part in (indptr, indices, rows.data)))
    return SparseRows(parts, rows.shape[1], most, sparse_chunk_rows(most, NumpyRows.CHUNK_ROWS))


def check_pairs(
    raw: AnyArray, rows: AnyArray, start: int, columns: tuple[str, ...], where: Callable[[int], str]
) -> None:
    """Refuse NaN, infinity, and rows whose squared norm overflows, as `values.check_rows` does for dense rows.

    Parameters
    ----------
    raw, rows : rows in pairs as stored, and as they are scaled.
    start : number of the first row.
    """
    values = values_in(rows)
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", values, values) * _HEADROOM
    bad = np.flatnonzero(~np.isfinite(squares))
    if not bad.size:
        return
    finite = np.isfinite(values_in(raw))
    if not finite.all():
        i, k = (int(place) for place in np.argwhere(~finite)[0])
        kind = "NaN" if np.isnan(values_in(raw)[i, k]) else "infinity"
        raise NonFiniteDataError(
            f"X contains {kind}: {not_finite(int((~finite).sum()))}, first in row {start + i}, "
            f"column {columns[int(raw[i, k])]!r}, in {where(start + i)}; remove those rows or fill them in"
        )
    row = start + int(bad[0])
    raise NumericRangeError(
        f"X has {bad.size} rows whose squared norm overflows float64, first row {row}, in {where(row)}; divide such "
        "columns by a number that is as large"
    )
