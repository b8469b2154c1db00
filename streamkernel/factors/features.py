"""The rows of a factor G (m, n) with ``G G^T = K~``, either recomputed or read from disk."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.basis import Basis
from streamkernel.engine import Session, layout_of
from streamkernel.engine.lazy import lazy_rows
from streamkernel.errors import ShapeError
from streamkernel.kernels import columns_of_pairs
from streamkernel.kernels.parameters import checked_columns
from streamkernel.reductions import Collect
from streamkernel.reductions.sums import FeatureGram, FeatureMap, Features, FeatureSums, FeatureTimes, FeatureTransposed
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
        if self.basis is not None:
            self._check(self.basis)
        object.__setattr__(self, "table", replace(self.table, targets=None, weights=None))

    def _check(self, basis: Basis) -> None:
        """Refuse a basis of other rows; sparse ones may have room for more entries than its points have."""
        columns, sparse = columns_of_pairs(basis.kernel), self.table.sparse
        found, wanted = (self.table.n_features if sparse else self.table.width), basis.points.shape[1]
        if sparse != bool(columns) or found != max(columns, default=wanted):
            kinds = [f"{max(columns)} of sparse rows" if columns else str(wanted), " of sparse rows" * sparse]
            raise ShapeError(
                f"the table has {found} features{kinds[1]}, the basis points {kinds[0]}; give the rows that the basis "
                "was chosen from"
            )

    @property
    def features(self) -> Features:
        """The description of G that a sweep needs."""
        return Features(None, self.table.width) if self.basis is None else Features.of_basis(self.basis)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n), the shape of G."""
        return self.table.n_rows, self.table.width if self.basis is None else len(self.basis)

    def gram(self, session: Session, name: str = "Gram matrix of the factor") -> FeatureSums:
        """``H = G^T G``, ``G^T 1``, the count and the trace: one sweep."""
        return session.sweep(FeatureGram(self.features), self.table, name)

    def transposed_times(self, V: ArrayLike, session: Session, name: str = "G^T V") -> Float:
        """``G^T V`` (n, q) for V (m, q) in memory, or (m,), one column: one sweep."""
        columns = checked_columns(V, self.shape[0], "the vector")
        return session.sweep(FeatureTransposed(self.features, columns, self.table.start), self.table, name)

    def times(self, A: ArrayLike, session: Session, name: str = "G A") -> Float:
        """``G A`` (m, q) for A (n, q) in memory, or (n,), one column: one sweep."""
        work = FeatureTimes.of(self.features, checked_columns(A, self.shape[1], "the matrix A", "G^T"))
        return session.sweep(Collect(work, work.name, self.table.n_rows), self.table, name)

    def to_dask(self) -> ArrayOrDask:
        """G as a Dask array (m, n), in chunks of the table's spans; nothing is read yet."""
        work = FeatureMap(self.features, dtype=self.table.dtype if self.basis is None else np.dtype(np.float64))
        return lazy_rows(work, self.table, work.name, layout_of(work, self.table).block_rows)
