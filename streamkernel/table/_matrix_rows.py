"""Rows of a kernel matrix: those of an array that holds its values, with their own places and k(x, x)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamkernel.atomic import text_digest
from streamkernel.errors import NumericRangeError
from streamkernel.matrix_rows import LEADING, NO_PLACE, kernel_values_in, own_in, places_in
from streamkernel.table.row_keys import NO_ROUNDING, Keys, RowRounding
from streamkernel.table.rows import GuidedRows, NumpyRows, RowArray, RowReader
from streamkernel.table.symmetry import check_symmetric, is_symmetric
from streamkernel.table.values import check_finite, table_dtype
from streamkernel.type_aliases import AnyArray, Float, Int

_CHUNK_BYTES = 8 << 20  # of rows in memory, of which chunks are copies


class MatrixRows(GuidedRows):
    """Rows (m, p) of a kernel matrix, read as `streamkernel.matrix_rows` tells, chunk by chunk.

    Parameters
    ----------
    stored : the values K (m, p).
    columns : the columns that are read, in this order; None for all. Rows then have places among them only where
        they are None: those of a model are compared with its basis, and are no basis.
    square : whether row i of the matrix is column i, so that its diagonal is k(x, x).
    diagonal : (m,) values k(x, x), where the matrix does not hold them.
    """

    def __init__(
        self, stored: RowArray, columns: Int | None = None, *, square: bool = True, diagonal: Float | None = None
    ) -> None:
        super().__init__(stored, stored.name, stored.shape[1], table_dtype(stored.dtype, "keep", stored.name))
        self.columns, self.square, self.diagonal = columns, square, diagonal
        if stored.in_memory:
            self.chunk_rows = min(NumpyRows.CHUNK_ROWS, max(16, _CHUNK_BYTES // (8 * self.width)))

    def with_diagonal(self, diagonal: Float, start: int) -> MatrixRows:
        """The same rows, with values k(x, x) of those from `start` on."""
        own = np.full(self.shape[0], np.nan)
        own[start : start + len(diagonal)] = diagonal
        return MatrixRows(self.guide, self.columns, square=False, diagonal=own)

    @property
    def width(self) -> int:
        """Numbers of a row as it is read."""
        return LEADING + (self.shape[1] if self.columns is None else len(self.columns))

    @property
    def fingerprint(self) -> str:
        columns = "all" if self.columns is None else self.columns.tolist()
        return text_digest(f"kernel matrix {self.guide.fingerprint}/{columns}")

    def chunk_span(self, row: int) -> tuple[int, int]:
        # Rows in memory are one chunk, of which a copy would be made.
        return RowArray.chunk_span(self, row) if self.guide.in_memory else self.guide.chunk_span(row)

    def cuts(self, start: int, stop: int) -> Int:
        return RowArray.cuts(self, start, stop) if self.guide.in_memory else self.guide.cuts(start, stop)

    def load(self, first: int, last: int) -> AnyArray:
        values = RowReader(self.guide).read(first, last) if self.guide.in_memory else self.guide.load(first, last)
        rows = np.empty((len(values), self.width), self.dtype)
        kernel_values_in(rows)[:] = values if self.columns is None else values[:, self.columns]
        here = np.arange(first, last)
        places_in(rows)[:] = here if self.columns is None else NO_PLACE
        if self.diagonal is not None:
            own_in(rows)[:] = self.diagonal[first:last]
        else:
            own_in(rows)[:] = self._own(values, here, first)
        return rows

    def _own(self, values: AnyArray, here: Int, first: int) -> AnyArray | float:
        """The diagonal k(x, x) of rows whose place is their number; NaN where it is not known.

        Rows for a model are taken for those of its fit by one row of them. Where others stand in another order than
        their columns, the block of this chunk on the diagonal is not symmetric, and says nothing of k(x, x).
        """
        known = self.square and (self.columns is None or is_symmetric(values[:, here].astype(self.dtype, copy=False)))
        return values[here - first, here] if known else np.nan

    def keys(self, values: AnyArray, rounding: RowRounding = NO_ROUNDING) -> Keys:
        """Keys of the kernel values: a place is not of the content of a row."""
        return rounding.keys(kernel_values_in(values))

    def check(self, rows: AnyArray, start: int, names: Sequence[str]) -> None:
        """Refuse values that are NaN, infinite or too large, k(x, x) below 0, and a block on the diagonal that is not
        symmetric, in rows (b, width) as read.

        Parameters
        ----------
        start : number of the first row.
        names : of the columns p.
        """
        values, own = kernel_values_in(rows), own_in(rows)
        with np.errstate(all="ignore"):
            squares = np.einsum("ij,ij->i", values, values)
        if not np.isfinite(squares).all():
            read = names if self.columns is None else [names[column] for column in self.columns]
            check_finite(values, start, read, self.where, "the kernel matrix", "compute these values again")
            row = start + int(np.flatnonzero(~np.isfinite(squares))[0])
            raise NumericRangeError(
                f"the kernel matrix has values whose squares overflow {rows.dtype}, first in row {row}, in "
                f"{self.where(row)}; divide all values by the largest one"
            )
        if self.columns is None:
            check_symmetric(values[:, start : start + len(values)], start)
        below = np.flatnonzero(own < 0.0)
        if below.size:
            row = start + int(below[0])
            raise NumericRangeError(
                f"the kernel matrix has {own[below[0]]:.6g} on its diagonal in row {row}, in {self.where(row)}: "
                "k(x, x) is at least 0; give a positive semidefinite matrix"
            )
