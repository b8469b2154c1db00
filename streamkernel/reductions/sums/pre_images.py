"""Sums of a ridge regression from the components of rows back to the rows: a map of pre-images.

With components ``t_i`` (r,) of row i, basis points ``t(z_j)``, ``K = k(T, T_Z)`` (m, n) and rows ``X`` (m, p) about the
constant c::

    minimise  |X - c - K A|^2 + alpha tr(A^T k(T_Z, T_Z) A)        x(t) = c + k(t, T_Z) A

(Bakir, Weston & Schoelkopf 2004, "Learning to find pre-images", here on a basis). The sums are those of
`NormalEquations`, of whose rows the components are the features and the rows themselves the targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.sums.feature_maps import FeatureTimes
from streamkernel.reductions.sums.normal_equations import NormalEquations, RidgeSums
from streamkernel.table import RowBlock, RowScaler
from streamkernel.type_aliases import AnyArray, Float


@dataclass(frozen=True)
class PreImages(Sums[RidgeSums]):
    """Accumulate `RidgeSums` over rows that are not scaled.

    Parameters
    ----------
    scaler : scaler of the rows whose components are taken; None for none.
    scores : map of scaled rows to their components (b, r).
    equations : sums of p targets, about 0, on a basis of components.
    offset : (p,), the c of the formula.
    """

    scaler: RowScaler | None
    scores: FeatureTimes
    equations: NormalEquations
    offset: Float

    def components(self, X: AnyArray, start: int = 0) -> Float:
        """T (b, r) of rows X (b, p) that are not scaled."""
        scaled = X if self.scaler is None else self.scaler.apply(X, X.dtype)
        return np.asarray(self.scores.map_block(RowBlock(start, scaled, None))[self.scores.name])

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return self.equations.shapes

    @property
    def symmetric(self) -> frozenset[str]:
        return self.equations.symmetric

    def fold(self, state: State, block: RowBlock) -> State:
        targets = np.asarray(block.X, dtype=np.float64) - self.offset
        T = self.components(block.X, block.start)
        return self.equations.fold(state, RowBlock(block.start, T, targets, weights=block.weights))

    def finalize(self, state: State) -> RidgeSums:
        return self.equations.finalize(state)

    def scratch_bytes(self, rows: int) -> int:
        scaled = 0 if self.scaler is None else self.scaler.width
        inner = self.scores.scratch_bytes(rows) + self.equations.scratch_bytes(rows)
        return inner + 8 * rows * (len(self.offset) + scaled)

    def flops_per_row(self) -> float:
        return self.scores.flops_per_row() + self.equations.flops_per_row()
