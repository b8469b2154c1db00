"""Sums of one iteration of the Lagrangian method for squared hinges on whitened features, float64.

With rows ``h = t [g, 1]`` of H, labels ``t = 2 y - 1``, nu = 2 C and ``Q = I / nu + H H^T``, the method iterates on
``z = Q u`` (Tresp 2001, section 3.3.2; ALGORITHMS 8.2)::

    s = (I / nu + H^T H)^-1 H^T z        u = nu (z - H s)        z <- 1 + (z - 1 - beta u)_+

**No state for a row.** With ``y = z - 1`` and c = beta nu the last step is ``y <- ((1 - c) y - c (1 - H s))_+``. Each
y depends on the one before by a factor of |1 - c| < 1 at most, so that the last steps s determine it to the last digit,
and for c = 1 the last one alone. These steps are computed again in each sweep; y is never stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.sums.features import Features
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class LagrangianSums:
    """Sums after the last step s.

    Attributes
    ----------
    target : (n + 1,), ``H^T W z``, z after the step.
    gradient : (n + 1,), ``-nu H^T W (1 - H s)_+``, the gradient of the loss at s.
    loss : ``nu / 2 sum w (1 - h^T s)_+^2``
    """

    target: Float
    gradient: Float
    loss: float


@dataclass(frozen=True)
class LagrangianStep(Sums[LagrangianSums]):
    """Accumulate `LagrangianSums`.

    Parameters
    ----------
    features : Features of n functions.
    column : column of Y with the indicators: 1 in the class and 0 outside it.
    nu : 2 C, > 0.
    c : beta nu, between 0 and 2.
    steps : (k, n + 1) the last steps s, in their order; y is 0 before the first of them, or has been forgotten.
    """

    features: Features
    column: int
    nu: float
    c: float
    steps: Float

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"vectors": (2, self.features.width + 1), "loss": (1,)}

    def fold(self, state: State, block: RowBlock) -> State:
        assert block.Y is not None
        G, t, w = self.features.of(block.X), 2.0 * block.Y[:, self.column] - 1.0, block.row_weights
        slacks = (1.0 - t[:, None] * (G @ self.steps[:, :-1].T + self.steps[:, -1])).T
        y = np.zeros(len(G))
        for slack in slacks:
            y = np.maximum((1.0 - self.c) * y - self.c * slack, 0.0)
        inside = np.maximum(slacks[-1], 0.0)
        rows = w * t * np.stack([1.0 + y, -self.nu * inside])
        state["vectors"][:, :-1] += rows @ G
        state["vectors"][:, -1] += rows.sum(axis=1)
        state["loss"] += 0.5 * self.nu * (w @ inside**2)
        return state

    def finalize(self, state: State) -> LagrangianSums:
        target, gradient = state["vectors"]
        return LagrangianSums(target, gradient, float(state["loss"][0]))

    def scratch_bytes(self, rows: int) -> int:
        return self.features.scratch_bytes(rows) + 8 * rows * (3 * len(self.steps) + 12)

    def flops_per_row(self) -> float:
        n = self.features.width
        own = self.features.raw_flops() + (0.0 if self.features.basis is None else float(n * n))
        return own + float((2 * n + 6) * len(self.steps) + 4 * n + 20)
