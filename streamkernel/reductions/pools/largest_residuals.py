"""The rows with the largest residuals, and the exact residual trace after every pick so far.

Per row, ``g_i = L^-1 k(Z, x_i)`` and ``r_i = k(x_i, x_i) - |g_i|^2``. One sweep computes

- the certificate, ``tr R = sum_i r_i``;
- the decrease of the trace by each function t, ``sum_i g_it^2``. The trace after the first t functions was tr R plus
  the decreases by the later functions (Fine & Scheinberg 2001; ALGORITHMS 3.1);
- the rows with the largest r_i (a tie goes to the lowest row number), and the largest r_i of the other rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import PIVOT_TOLERANCE, Basis
from streamkernel.reductions.contract import Reduction, State
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float, Int


@dataclass(frozen=True)
class ResidualRows:
    """Result of the sweep.

    Attributes
    ----------
    residual_trace, trace : sums of the residual and of the kernel's diagonal
    taken : (n,) decrease of the residual trace by each function of the basis
    rows, X, residuals : (k,), (k, p), (k,) the rows with the largest residuals, by descending residual, ties by row
        number
    next_residual, next_row : largest residual among the other rows, and its row number; -inf and -1 without other rows
    """

    residual_trace: float
    trace: float
    taken: Float
    rows: Int
    X: AnyArray
    residuals: Float
    next_residual: float
    next_row: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def path(self) -> Float:
        """(n,) exact residual trace after each function of the basis."""
        later = np.concatenate([np.cumsum(self.taken[:0:-1])[::-1], [0.0]])
        return self.residual_trace + later[: len(self.taken)]


@dataclass(frozen=True)
class LargestResiduals(Reduction[ResidualRows]):
    """Accumulate `ResidualRows`.

    Parameters
    ----------
    basis : Basis of the functions chosen so far (may be empty).
    count : number of rows to return; 0 for the sums alone.
    """

    basis: Basis
    count: int

    def map_block(self, block: RowBlock) -> State:
        diagonal = np.asarray(self.basis.kernel.diagonal(block.X), dtype=np.float64)
        parts = np.empty((len(diagonal), len(self.basis) + 1))
        parts[:, 0] = diagonal
        if len(self.basis):
            np.square(self.basis.features(block.X), out=parts[:, 1:])
        # The squares are subtracted one by one, as pivots are taken one by one. Rows without a change by any pick stay
        # tied at k(x, x), and equal rows stay equal to the last bit where BLAS gives them equal features: some of its
        # kernels treat the last rows of a block in another way. Which of equal rows is picked is then not the first.
        residual = np.maximum(np.subtract.reduce(parts, axis=1), 0.0)
        # The residual of a row in the span of the basis is rounding, and so is that of a chosen row.
        alive = np.flatnonzero(residual > PIVOT_TOLERANCE * diagonal)
        alive = alive[~np.isin(block.start + alive, self.basis.rows)]
        w = block.weights
        if w is None:
            totals, taken = np.array([residual.sum(), diagonal.sum()]), parts[:, 1:].sum(axis=0)
        else:
            # Copies of a row have one residual: a weight counts in the sums, and not in the order of the rows.
            alive = alive[w[alive] > 0.0]
            totals, taken = np.array([w @ residual, w @ diagonal]), w @ parts[:, 1:]
        state: State = {
            "totals": totals,
            "taken": taken,
            "rows": block.start + alive.astype(np.int64),
            "residuals": residual[alive],
        }
        kept = self._largest(state)
        return {**self._at(state, kept), "X": block.X[alive[kept]]}

    def combine(self, left: State, right: State) -> State:
        sums = {name: left[name] + right[name] for name in ("totals", "taken")}
        both = {name: np.concatenate([left[name], right[name]]) for name in left if name not in sums}
        return self._at({**sums, **both}, self._largest(both))

    def _largest(self, state: State) -> Int:
        """Positions of the `count` + 1 largest residuals: the last one bounds the residuals of all other rows."""
        size = self.count + 1 if self.count else 0
        return np.lexsort((state["rows"], -state["residuals"]))[:size]

    @staticmethod
    def _at(state: State, kept: Int) -> State:
        return {name: values if name in ("totals", "taken") else values[kept] for name, values in state.items()}

    def finalize(self, state: State) -> ResidualRows:
        residual_trace, trace = (float(value) for value in state["totals"])
        k = self.count
        more = len(state["rows"]) > k
        return ResidualRows(
            residual_trace,
            trace,
            state["taken"],
            state["rows"][:k],
            state["X"][:k],
            state["residuals"][:k],
            float(state["residuals"][k]) if more else -np.inf,
            int(state["rows"][k]) if more else -1,
        )

    def state_bytes(self) -> int:
        n, p = self.basis.points.shape
        return int((self.count + 1) * (16 + p * self.basis.points.dtype.itemsize) + 8 * n + 16)

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.basis.points.shape
        return int(8 * rows * (2 * n + p + 8))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float(n * n + 2 * n * (p + 2) + 100)
