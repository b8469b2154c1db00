"""Sums of one iteration of the active set method for squared hinges on whitened features, float64.

With rows ``h = t [g, 1]`` of H, labels ``t = 2 y - 1`` and nu = 2 C, on rows B that are active::

    gram = sum_B w h h^T        labels = sum_B w h        u = nu (1 - h^T b)_+ on B, 0 elsewhere

**No state for a row.** A row is active as long as its u is > 0 at every point since the rows were last taken anew, so
that the points say which rows are active: these values are computed again in each sweep (Tresp 2001, section 3.3.1;
ALGORITHMS 8.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import mirror_upper
from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.likelihoods import add_weighted_gram
from streamkernel.reductions.sums.features import Features
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class ActiveSetSums:
    """Sums at the last point; "active" rows are those that were active before it.

    Attributes
    ----------
    grams : (2, n + 1, n + 1), ``sum w h h^T`` over rows inside the margin: of the active ones, and of the others.
    labels : (2, n + 1), ``sum w h`` over the same rows.
    pull : (n + 1,), ``H^T u``
    loss : ``nu / 2 sum w (1 - h^T b)_+^2`` over all rows.
    linear, squares : sums of w u and of w u^2.
    dropped : number of active rows that are not inside the margin.
    missing : number of other rows that are inside it.
    """

    grams: Float
    labels: Float
    pull: Float
    loss: float
    linear: float
    squares: float
    dropped: int
    missing: int


@dataclass(frozen=True)
class ActiveSetStep(Sums[ActiveSetSums]):
    """Accumulate `ActiveSetSums`.

    Parameters
    ----------
    features : Features of n functions.
    column : column of Y with the indicators: 1 in the class and 0 outside it.
    nu : 2 C, > 0.
    points : (k, n + 1) coefficients b since the rows were last taken anew, in their order; the last is the constant.
    """

    features: Features
    column: int
    nu: float
    points: Float

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n = self.features.width + 1
        return {"grams": (2, n, n), "vectors": (3, n), "totals": (5,)}

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"grams"})

    def fold(self, state: State, block: RowBlock) -> State:
        assert block.Y is not None
        w = block.row_weights
        counted = np.flatnonzero(w)
        X, Y = block.X, block.Y
        if len(counted) < len(w):
            X, Y, w = X[counted], Y[counted], w[counted]
        G, t = self.features.of(X), 2.0 * Y[:, self.column] - 1.0
        slack = 1.0 - t[:, None] * (G @ self.points[:, :-1].T + self.points[:, -1])
        active, last = (slack[:, :-1] > 0.0).all(axis=1), slack[:, -1]
        inside = last > 0.0
        kept, missing = w * (active & inside), w * (~active & inside)
        u = self.nu * last
        rows = t * np.stack([kept, missing, kept * u])
        state["vectors"][:, :-1] += rows @ G
        state["vectors"][:, -1] += rows.sum(axis=1)
        loss = 0.5 * self.nu * float((w * inside) @ last**2)
        counts = np.count_nonzero(active & ~inside), np.count_nonzero(~active & inside)
        state["totals"] += [loss, kept @ u, kept @ u**2, *counts]
        add_weighted_gram(G, np.column_stack([kept, missing]), state["grams"])
        return state

    def finalize(self, state: State) -> ActiveSetSums:
        grams = np.stack([mirror_upper(gram) for gram in state["grams"]])
        loss, linear, squares, dropped, missing = state["totals"].tolist()
        *labels, pull = state["vectors"]
        return ActiveSetSums(grams, np.stack(labels), pull, loss, linear, squares, int(dropped), int(missing))

    def scratch_bytes(self, rows: int) -> int:
        n, k = self.features.width, len(self.points)
        return self.features.scratch_bytes(rows) + 8 * rows * (n + 2 * k + 16) + 16 * 1024 * (n + 1)

    def flops_per_row(self) -> float:
        n = self.features.width
        own = self.features.raw_flops() + (0.0 if self.features.basis is None else float(n * n))
        return own + float((n + 1) ** 2 + (2 * len(self.points) + 6) * n + 60)
