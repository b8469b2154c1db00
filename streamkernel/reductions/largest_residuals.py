"""The rows of largest residual, and the exact residual trace after every pick so far.

Per row, ``g_i = L^-1 k(Z, x_i)`` and ``r_i = k(x_i, x_i) - |g_i|^2``. In the same sweep

- the certificate, ``tr R = sum_i r_i``;
- what each function took off it, ``sum_i g_it^2``: after the first t functions the trace was tr R plus what the later
  ones took (Fine & Scheinberg 2001; ALGORITHMS 3.1);
- the rows with the largest r_i, ties to the lowest row number, and the one that comes next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.basis import PIVOT_TOLERANCE, Basis
from streamkernel.reductions.contract import Reduction, State
from streamkernel.table import RowBlock

__all__ = ["LargestResiduals", "ResidualRows"]


@dataclass(frozen=True)
class ResidualRows:
    """What the sweep brings home.

    Attributes
    ----------
    residual_trace, trace : sums of the residual and of the kernel's diagonal
    taken : (n,) what each function of the basis took off the trace when it was added
    rows, X, residuals : (k,), (k, p), (k,) the rows of largest residual, by descending residual, ties by row number
    next_residual, next_row : of the largest row left out; -inf and -1 where there is none
    """

    residual_trace: float
    trace: float
    taken: NDArray[np.float64]
    rows: NDArray[np.int64]
    X: NDArray[Any]
    residuals: NDArray[np.float64]
    next_residual: float
    next_row: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def path(self) -> NDArray[np.float64]:
        """(n,) exact residual trace after each function of the basis."""
        later = np.concatenate([np.cumsum(self.taken[:0:-1])[::-1], [0.0]])
        return self.residual_trace + later[: len(self.taken)]


@dataclass(frozen=True)
class LargestResiduals(Reduction[ResidualRows]):
    """Parameters
    ----------
    basis : Basis of the functions chosen so far (may be empty).
    count : how many rows to bring; 0 for the sums alone.
    """

    basis: Basis
    count: int

    def map_block(self, block: RowBlock) -> State:
        diagonal = np.asarray(self.basis.kernel.diagonal(block.X), dtype=np.float64)
        parts = np.empty((len(diagonal), len(self.basis) + 1))
        parts[:, 0] = diagonal
        if len(self.basis):
            np.square(self.basis.features(block.X), out=parts[:, 1:])
        # One after another, as pivots are taken one at a time: rows that no pick has touched stay tied at k(x, x), and
        # rows that are equal stay equal to the last bit.
        residual = np.maximum(np.subtract.reduce(parts, axis=1), 0.0)
        # What is left of a row in the span is rounding, and so is all that is left of a chosen one.
        alive = np.flatnonzero(residual > PIVOT_TOLERANCE * diagonal)
        alive = alive[~np.isin(block.start + alive, self.basis.rows)]
        state: State = {
            "totals": np.array([residual.sum(), diagonal.sum()]),
            "taken": parts[:, 1:].sum(axis=0),
            "rows": block.start + alive.astype(np.int64),
            "residuals": residual[alive],
        }
        kept = self._largest(state)
        return {**self._at(state, kept), "X": block.X[alive[kept]]}

    def combine(self, left: State, right: State) -> State:
        sums = {name: left[name] + right[name] for name in ("totals", "taken")}
        both = {name: np.concatenate([left[name], right[name]]) for name in left if name not in sums}
        return self._at({**sums, **both}, self._largest(both))

    def _largest(self, state: State) -> NDArray[np.int64]:
        """Positions of the largest residuals, one more than is brought: its residual bounds all that are left out."""
        size = self.count + 1 if self.count else 0
        return np.lexsort((state["rows"], -state["residuals"]))[:size]

    @staticmethod
    def _at(state: State, kept: NDArray[np.int64]) -> State:
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
