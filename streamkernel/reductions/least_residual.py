"""The least residual of all rows: how far a basis explains more of a row than there is.

For a positive semidefinite kernel no row has a residual below 0::

    k(x, x) - |L^-1 k(Z, x)|^2 >= 0

Where it is below 0, by more than rounding, the matrix of the rows Z and x has an eigenvalue below 0: that proves the
kernel indefinite. Where it is not, nothing is proved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import block_array
from streamkernel.reductions.contract import Reduction, State
from streamkernel.table import RowBlock

_ROUNDING = 1e-9  # of k(x, x)


@dataclass(frozen=True)
class Shortfall:
    """The row of which the basis explains most beyond its k(x, x).

    Attributes
    ----------
    least : its residual; 0 where no row has one below 0 by more than rounding.
    row : its number; -1 for none.
    own : its k(x, x); 0 for none.
    largest : the largest k(x, x) of all rows.
    """

    least: float
    row: int
    own: float
    largest: float

    def below(self, share: float) -> bool:
        """Whether the residual is below 0 by more than a share of the largest k(x, x)."""
        return self.least < -share * self.largest


@dataclass(frozen=True)
class LeastResidual(Reduction[Shortfall]):
    """Find the `Shortfall` of a table; rows of weight 0 are left out.

    Parameters
    ----------
    basis : Basis of n functions.
    """

    basis: Basis

    def empty(self) -> State:
        return {
            "least": np.zeros(1),
            "row": np.full(1, -1, np.int64),
            "own": np.zeros(1),
            "largest": np.zeros(1),
        }

    def fold(self, state: State, block: RowBlock) -> State:
        G = self.basis.features(block.X, block_array("residuals", (len(block), len(self.basis))))
        own = np.asarray(self.basis.kernel.diagonal(block.X), np.float64)
        left = own - np.einsum("ij,ij->i", G, G)
        # Of rounding the least one is that of another row with other blocks.
        left[left >= -_ROUNDING * own] = 0.0
        if block.weights is not None:
            counted = block.weights > 0.0
            own, left = np.where(counted, own, 0.0), np.where(counted, left, 0.0)
        state["largest"] = np.maximum(state["largest"], own.max(initial=0.0))
        if len(left) and left.min() < state["least"][0]:
            i = int(left.argmin())
            state |= {"least": left[[i]], "row": np.array([block.start + i]), "own": own[[i]]}
        return state

    def combine(self, left: State, right: State) -> State:
        found = right if right["least"][0] < left["least"][0] else left
        return {**found, "largest": np.maximum(left["largest"], right["largest"])}

    def finalize(self, state: State) -> Shortfall:
        return Shortfall(
            float(state["least"][0]), int(state["row"][0]), float(state["own"][0]), float(state["largest"][0])
        )

    def state_bytes(self) -> int:
        return 32

    def scratch_bytes(self, rows: int) -> int:
        return int(8 * rows * (len(self.basis) + self.basis.points.shape[1] + 4))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float(n * n + 2 * n * p)
