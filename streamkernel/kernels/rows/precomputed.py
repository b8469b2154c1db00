"""A kernel whose values are given: a matrix of them in place of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.kernels.base import CHUNK_ROWS, Kernel, PreparedKernel
from streamkernel.kernels.parameters import checked_rows
from streamkernel.matrix_rows import LEADING, own_in, places_in
from streamkernel.type_aliases import AnyArray, Float, Unchecked


@dataclass(frozen=True)
class Precomputed(Kernel):
    """``k(x, z) = K[x, z]`` for rows of a kernel matrix (`streamkernel.matrix_rows`).

    A basis function is a column of the matrix; a block of kernel values is some columns of a block of its rows.

    Parameters
    ----------
    n_columns : int, optional
        Columns of the rows; None for any number of them.
    """

    n_columns: int | None = None

    name: ClassVar[str] = "precomputed"

    def prepare(self, Z: Unchecked) -> PreparedKernel:
        points = checked_rows(Z, "Z")
        self.check_features(points.shape[1])
        return PreparedColumns(self, points)

    def diagonal(self, X: Unchecked) -> Float:
        own: Float = own_in(checked_rows(X)).astype(np.float64)
        if np.isnan(own).any():
            raise ParameterError(
                "the kernel is precomputed, and k(x, x) of new rows, which variances need, is not among K(new rows, "
                "rows of the fit); give the square matrix of the fit, with all its rows, or in Python the diagonal "
                "beside the rows: predict(..., diagonal=...)"
            )
        return own

    def with_lengthscale(self, lengthscale: Unchecked) -> Kernel:
        return self

    def check_features(self, n_features: int) -> None:
        if self.n_columns not in (None, n_features - LEADING):
            raise ShapeError(
                f"the kernel matrix has {n_features - LEADING} columns, and the kernel is of {self.n_columns}; give a "
                "column for each row of the fit"
            )


def has_precomputed(kernel: Kernel) -> bool:
    """Whether the kernel, or a part of it, is precomputed."""
    return isinstance(kernel, Precomputed) or any(map(has_precomputed, kernel.parts))


class PreparedColumns(PreparedKernel):
    """The columns of some rows of the matrix.

    Raises
    ------
    ShapeError
        One of the points is no row of the square matrix.
    """

    def __init__(self, kernel: Precomputed, points: AnyArray) -> None:
        super().__init__(kernel, points)
        places = places_in(points)
        if not ((places >= 0) & (places < points.shape[1] - LEADING)).all():
            raise ShapeError("some points of the basis have no column in the kernel matrix; give rows of the matrix")
        self._columns = LEADING + places.astype(np.intp)

    def fill(self, X: AnyArray, out: AnyArray) -> None:
        if out.flags.c_contiguous:
            np.take(X, self._columns, axis=1, out=out, mode="clip")  # other modes make a copy of `out`
            return
        for start in range(0, len(X), CHUNK_ROWS):  # `take` would make a copy of the whole of `out`
            rows = slice(start, start + CHUNK_ROWS)
            out[rows] = X[rows].take(self._columns, axis=1)
