"""Products with the full kernel matrix K (m, m), tile by tile: it is never held, nor is a block of m columns of it.

A row block meets the rows after it, some at a time, and each tile serves both of its sides, ``K`` being symmetric::

    (K V)_b = k(X_b, X_b) V_b + sum over later rows o of  k(X_b, X_o) V_o      and      (K V)_o += k(X_b, X_o)^T V_b

so that every pair of rows is met once: m (m + 1) / 2 kernel values, O(m^2) work, whatever the blocks are (Skilling
1993; ALGORITHMS 9.1). Row weights are not heeded: K is a matrix of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.kernels import Kernel, PreparedKernel
from streamkernel.reductions.contract import Reduction, SentAsFields, State, add_states
from streamkernel.table import RowBlock, Table

__all__ = ["CrossProducts", "KernelProducts"]

Float = NDArray[np.float64]

# A tile stays in the second cache between its kernel values and the two products made of them.
_TILE_ROWS, _PANEL_ROWS = 512, 256


def _panels(rows: int) -> Iterator[slice]:
    for first in range(0, rows, _PANEL_ROWS):
        yield slice(first, min(first + _PANEL_ROWS, rows))


@dataclass(frozen=True)
class KernelProducts(Reduction[Float]):
    """``K V`` (m, q), K being the kernel matrix of the table that is swept.

    Parameters
    ----------
    kernel : Kernel
    table : the table that is swept, which every block reads on from its own end.
    V : (m, q) float64, held in memory, one row for each row of the table.
    """

    kernel: Kernel
    table: Table
    V: Float

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", replace(self.table, targets=None, weights=None))

    def map_block(self, block: RowBlock) -> State:
        return self.fold({"KV": np.zeros(self.V.shape)}, block)

    def fold(self, state: State, block: RowBlock) -> State:
        X, first = np.ascontiguousarray(block.X, dtype=np.float64), block.start - self.table.start
        for start in range(0, len(X), _TILE_ROWS):
            self._tile(state["KV"], X[start:], X[start : start + _TILE_ROWS], first + start, first + start)
        for other in self.table.blocks(block.stop, self.table.stop, _TILE_ROWS):
            Z = np.ascontiguousarray(other.X, dtype=np.float64)
            self._tile(state["KV"], X, Z, first, other.start - self.table.start)
        return state

    def _tile(self, KV: Float, X: Float, Z: Float, first: int, other: int) -> None:
        """Rows X, the first of which is number `first`, meet the rows Z; those that are both count once."""
        prepared = self.kernel.prepare(Z)
        there = slice(other, other + len(Z))
        both = len(Z) if first == other else 0
        if both:
            KV[there] += prepared.block(Z) @ self.V[there]
        for panel in _panels(len(X) - both):
            rows = slice(first + both + panel.start, first + both + panel.stop)
            K = prepared.block(X[both + panel.start : both + panel.stop])
            KV[rows] += K @ self.V[there]
            KV[there] += K.T @ self.V[rows]

    def combine(self, left: State, right: State) -> State:
        return add_states(left, right)

    def finalize(self, state: State) -> Float:
        return state["KV"]

    def state_bytes(self) -> int:
        return int(8 * self.V.size)

    def scratch_bytes(self, rows: int) -> int:
        p = self.table.n_features
        # The block in float64; a tile, its rows as they are read and as the loops want them; a second reader's chunk.
        tile = 8 * (_PANEL_ROWS * _TILE_ROWS + _TILE_ROWS * (3 * p + 2 * self.V.shape[1]))
        return int(8 * rows * p + max(tile, 8 * _TILE_ROWS**2) + 3 * self.table.chunk_bytes)

    def flops_per_row(self) -> float:
        return float(len(self.V) * (self.table.n_features + 2 * self.V.shape[1]))


@dataclass(frozen=True)
class CrossProducts(SentAsFields, Reduction[Float]):
    """``k(Z, X) V`` (q, d) for given rows Z and the rows X that are swept.

    Parameters
    ----------
    kernel : Kernel
    points : (q, p) rows Z, scaled as the table's.
    V : (m, d) float64, one row for each row of the table.
    first : number of the table's first row, which is V's row 0.
    """

    kernel: Kernel
    points: NDArray[Any]
    V: Float
    first: int

    @cached_property
    def prepared(self) -> list[PreparedKernel]:
        """The kernel with each tile of the points packed."""
        Z = np.ascontiguousarray(self.points, dtype=np.float64)
        return [self.kernel.prepare(Z[start : start + _TILE_ROWS]) for start in range(0, len(Z), _TILE_ROWS)]

    def map_block(self, block: RowBlock) -> State:
        return self.fold({"KV": np.zeros((len(self.points), self.V.shape[1]))}, block)

    def fold(self, state: State, block: RowBlock) -> State:
        X = np.ascontiguousarray(block.X, dtype=np.float64)
        V = self.V[block.start - self.first : block.stop - self.first]
        for number, prepared in enumerate(self.prepared):
            there = slice(number * _TILE_ROWS, number * _TILE_ROWS + len(prepared.points))
            for panel in _panels(len(X)):
                state["KV"][there] += prepared.block(X[panel]).T @ V[panel]
        return state

    def combine(self, left: State, right: State) -> State:
        return add_states(left, right)

    def finalize(self, state: State) -> Float:
        return state["KV"]

    def state_bytes(self) -> int:
        return int(8 * len(self.points) * self.V.shape[1])

    def scratch_bytes(self, rows: int) -> int:
        q, p = self.points.shape
        return int(8 * (rows * p + 3 * q * p + _PANEL_ROWS * _TILE_ROWS))

    def flops_per_row(self) -> float:
        q, p = self.points.shape
        return float(2 * q * (p + self.V.shape[1]))
