"""The rows that violate the margin of a kernel machine most, and its loss over all rows.

With the decision function ``f = k(x, Z) c + b`` and a row whose dual variables are 0, a kink with the box [l, h] and
``v = target - f`` is violated by ``v`` where h > 0, and by ``-v`` where l < 0: for the hinge, where ``t f < 1``. One
sweep computes the loss of all rows, exactly, and the rows outside a working set that violate most.

f of a row is a sum over the points in one order, whatever the block: equal bits for any chunking, and equal rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.kernels import Kernel, PreparedKernel
from streamkernel.reductions.contract import Reduction, SentAsFields, State
from streamkernel.reductions.gather import Sample
from streamkernel.reductions.margins.losses import PiecewiseLinear
from streamkernel.reductions.margins.targets import Target
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float, Int

_PANEL_ROWS = 128  # whose kernel values stay in the second-level cache until they are summed


@dataclass(frozen=True)
class ViolatingRows:
    """Result of the sweep.

    Attributes
    ----------
    loss : ``sum w loss(y, f)`` over all rows.
    weight, trace, rows : sums of w and of w k(x, x), and number of rows of weight > 0.
    count : number of rows outside the working set that violate by more than the tolerance.
    worst : (k,) violations of the worst of them, in the order of `sample`.
    sample : these rows, with the targets of the machine alone.
    """

    loss: float
    weight: float
    trace: float
    rows: int
    count: int
    worst: Float
    sample: Sample


@dataclass(frozen=True)
class Violators(SentAsFields, Reduction[ViolatingRows]):
    """Accumulate `ViolatingRows`.

    Parameters
    ----------
    kernel : Kernel k.
    points : (n, p) support vectors Z, float64.
    coefficients : (n,) c.
    offset : b.
    loss : piecewise linear loss.
    target : its targets; None for those of the one-class machine, which has none.
    inside : (s,) row numbers of the working set, ascending.
    tolerance : largest violation that does not count.
    pool : largest number of rows in the result.
    """

    kernel: Kernel
    points: Float
    coefficients: Float
    offset: float
    loss: PiecewiseLinear
    target: Target | None
    inside: Int
    tolerance: float
    pool: int

    @cached_property
    def prepared(self) -> PreparedKernel:
        """The kernel with the points packed for the block loops."""
        return self.kernel.prepare(self.points)

    def values(self, X: AnyArray) -> Float:
        """f (b,)."""
        f = np.full(len(X), self.offset)
        if not len(self.points):
            return f
        for start in range(0, len(X), _PANEL_ROWS):
            K = self.prepared.block(np.ascontiguousarray(X[start : start + _PANEL_ROWS], np.float64))
            # A product of BLAS would have bits that depend on the number of rows.
            K *= self.coefficients
            f[start : start + _PANEL_ROWS] += K.sum(axis=1)
        return f

    def _targets(self, block: RowBlock) -> Float:
        """y (b,)."""
        if self.target is None:
            return np.zeros(len(block))
        assert block.Y is not None
        return self.target.of(block.Y)

    def map_block(self, block: RowBlock) -> State:
        y = self._targets(block)
        f, w = self.values(block.X), block.row_weights
        violation = np.zeros(len(f))
        for kink in self.loss.kinks(y):
            v = kink.targets - f
            np.maximum(violation, np.where(kink.low + self.loss.C > 0.0, v, 0.0), out=violation)
            np.maximum(violation, np.where(kink.low < 0.0, -v, 0.0), out=violation)
        rows = np.arange(block.start, block.stop)
        outside = np.flatnonzero((violation > self.tolerance) & (w > 0.0) & ~np.isin(rows, self.inside))
        found: State = {"rows": rows[outside], "violations": violation[outside]}
        kept = self._worst(found)
        local = outside[kept]
        return {
            "totals": np.array(
                [w @ self.loss.loss(y, f), w.sum(), w @ self.kernel.diagonal(block.X), (w > 0.0).sum(), len(outside)]
            ),
            "rows": found["rows"][kept],
            "violations": found["violations"][kept],
            "X": block.X[local],
            "Y": y[local, None],
            "weights": w[local],
        }

    def combine(self, left: State, right: State) -> State:
        both = {name: np.concatenate([left[name], right[name]]) for name in left if name != "totals"}
        kept = self._worst(both)
        return {"totals": left["totals"] + right["totals"], **{name: values[kept] for name, values in both.items()}}

    def _worst(self, state: State) -> Int:
        """Positions of the `pool` largest violations, ascending by row; a tie goes to the lowest row number."""
        order = np.lexsort((state["rows"], -state["violations"]))[: self.pool]
        return order[np.argsort(state["rows"][order])]

    def finalize(self, state: State) -> ViolatingRows:
        sample = Sample(state["rows"], state["X"], state["Y"], state["weights"])
        loss, weight, trace, rows, count = state["totals"].tolist()
        return ViolatingRows(loss, weight, trace, int(rows), int(count), state["violations"], sample)

    def state_bytes(self) -> int:
        return int(self.pool * self.row_bytes(self.points.shape[1]) + 40)

    @staticmethod
    def row_bytes(width: int) -> int:
        """Bytes of a row of the pool, at most."""
        return 32 + 8 * width

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.points.shape
        return int(8 * (rows * 16 + min(rows, _PANEL_ROWS) * (n + p)))

    def flops_per_row(self) -> float:
        n, p = self.points.shape
        return float(2 * n * (p + 1) + 60)
