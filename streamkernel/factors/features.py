"""The rows of a factor G (m, n) with ``G G^T = K~``, either recomputed or read from disk."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.basis import Basis
from streamkernel.engine import Session, layout_of
from streamkernel.engine.lazy import lazy_rows
from streamkernel.errors import DTypeError, NonFiniteDataError, ShapeError, ShapeMismatchError
from streamkernel.reductions import Collect
from streamkernel.reductions.sums import (
    FeatureGram,
    FeatureMap,
    Features,
    FeatureSums,
    FeatureTimes,
    FeatureTransposed,
)
from streamkernel.table import Table
from streamkernel.type_aliases import ArrayOrDask, Float


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """The rows of G for a table. Pure data, picklable; targets and row weights of the table are left out.

    Parameters
    ----------
    table : m rows, scaled as the basis points are; or, without a basis, the stored factor, whose n columns are G.
    basis : n functions; their whitened features ``G = k(X, Z) L^-T`` are recomputed block by block. None to read G.

    Raises
    ------
    ShapeError
        The rows of the table and the basis points have different widths.
    """

    table: Table
    basis: Basis | None = None

    def __post_init__(self) -> None:
        if self.basis is not None and self.basis.points.shape[1] != self.table.n_features:
            raise ShapeError(
                f"the table has {self.table.n_features} features, the basis points {self.basis.points.shape[1]}; "
                "give the rows that the basis was chosen from"
            )
        object.__setattr__(self, "table", replace(self.table, targets=None, weights=None))

    @property
    def features(self) -> Features:
        """The description of G that a sweep needs."""
        return Features(None, self.table.n_features) if self.basis is None else Features.of_basis(self.basis)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n), the shape of G."""
        return self.table.n_rows, self.table.n_features if self.basis is None else len(self.basis)

    def gram(self, session: Session, name: str = "Gram matrix of the factor") -> FeatureSums:
        """``H = G^T G``, ``G^T 1``, the count and the trace: one sweep."""
        return session.sweep(FeatureGram(self.features), self.table, name)

    def transposed_times(self, V: ArrayLike, session: Session, name: str = "G^T V") -> Float:
        """``G^T V`` (n, q) for V (m, q) in memory: one sweep."""
        columns = self.checked(V, self.shape[0])
        return session.sweep(FeatureTransposed(self.features, columns, self.table.start), self.table, name)

    def times(self, A: ArrayLike, session: Session, name: str = "G A") -> Float:
        """``G A`` (m, q) for A (n, q), in memory: one sweep."""
        work = FeatureTimes.of(self.features, self.checked(A, self.shape[1]))
        return session.sweep(Collect(work, work.name, self.table.n_rows), self.table, name)

    def to_dask(self) -> ArrayOrDask:
        """G as a Dask array (m, n), in chunks of the table's spans; nothing is read yet."""
        work = FeatureMap(self.features, dtype=self.table.dtype if self.basis is None else np.dtype(np.float64))
        return lazy_rows(work, self.table, work.name, layout_of(work, self.table).block_rows)

    @staticmethod
    def checked(V: ArrayLike, rows: int) -> Float:
        """V as finite float64 columns (rows, q).

        Raises
        ------
        DTypeError, ShapeMismatchError, NonFiniteDataError
            V is not numeric, has another shape, or contains NaN or infinity.
        """
        values = np.asarray(V)
        if values.dtype.kind not in "biuf":
            raise DTypeError(f"the vector holds {values.dtype}; give real numbers (float, integer or bool)")
        if values.ndim != 2 or len(values) != rows:
            raise ShapeMismatchError(
                f"the columns have shape {values.shape}, not ({rows}, q); give one row for each of G"
            )
        columns = np.ascontiguousarray(values, dtype=np.float64)
        if not np.isfinite(columns).all():
            row = int(np.argwhere(~np.isfinite(columns))[0, 0])
            raise NonFiniteDataError(f"the vector holds NaN or infinity, first in row {row}; give finite numbers")
        return columns
