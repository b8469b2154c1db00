"""Products with the full kernel matrix K (m, m), tile by tile: neither K nor a block of its columns is in memory.

A row block is paired with itself and with the later rows, tile by tile. K is symmetric, so that each tile serves the
rows on both of its sides::

    (K V)_b = k(X_b, X_b) V_b + sum over later rows o of  k(X_b, X_o) V_o      and      (K V)_o += k(X_b, X_o)^T V_b

Every pair of rows is therefore evaluated about once: m (m + 1) / 2 kernel values, O(m^2) work, for all block sizes
(Skilling 1993; ALGORITHMS 9.1). Row weights are not used, because K is a matrix of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from streamkernel.kernels import Kernel, PreparedKernel
from streamkernel.reductions.contract import SentAsFields, State, Sums
from streamkernel.table import RowBlock, Table
from streamkernel.type_aliases import AnyArray, Float

# A tile stays in the second-level cache from its kernel values to its two products.
_TILE_ROWS, _PANEL_ROWS = 512, 256


def _panels(rows: int) -> Iterator[slice]:
    for first in range(0, rows, _PANEL_ROWS):
        yield slice(first, min(first + _PANEL_ROWS, rows))


@dataclass(frozen=True)
class KernelProducts(Sums[Float]):
    """``K V`` (m, q), K the kernel matrix of the swept table.

    Parameters
    ----------
    kernel : Kernel of K.
    table : the swept table; each block reads the rows after its own end from it.
    V : (m, q) float64, in memory, one row for each row of the table.
    """

    kernel: Kernel
    table: Table
    V: Float

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", replace(self.table, targets=None, weights=None))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"KV": self.V.shape}

    def fold(self, state: State, block: RowBlock) -> State:
        X, first = np.ascontiguousarray(block.X, dtype=np.float64), block.start - self.table.start
        for start in range(0, len(X), _TILE_ROWS):
            self._tile(state["KV"], X[start:], X[start : start + _TILE_ROWS], first + start, first + start)
        for other in self.table.blocks(block.stop, self.table.stop, _TILE_ROWS):
            Z = np.ascontiguousarray(other.X, dtype=np.float64)
            self._tile(state["KV"], X, Z, first, other.start - self.table.start)
        return state

    def _tile(self, KV: Float, X: Float, Z: Float, first: int, other: int) -> None:
        """Add the products of the tile k(X, Z) to KV; rows that are in both X and Z count once.

        `first` and `other` are the positions of the first rows of X and of Z in the table.
        """
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

    def finalize(self, state: State) -> Float:
        return state["KV"]

    def scratch_bytes(self, rows: int) -> int:
        p = self.table.width
        # The block in float64; a tile, with its rows as read and as packed for the loops; a second reader's chunks.
        tile = 8 * (_PANEL_ROWS * _TILE_ROWS + _TILE_ROWS * (3 * p + 2 * self.V.shape[1]))
        return int(8 * rows * p + max(tile, 8 * _TILE_ROWS**2) + 3 * self.table.chunk_bytes)

    def flops_per_row(self) -> float:
        return float(len(self.V) * (self.table.width + 2 * self.V.shape[1]))


@dataclass(frozen=True)
class CrossProducts(SentAsFields, Sums[Float]):
    """``k(Z, X) V`` (q, d) for given rows Z and the swept rows X.

    Parameters
    ----------
    kernel : Kernel k.
    points : (q, p) rows Z, scaled as the rows of the table.
    V : (m, d) float64, one row for each row of the table.
    first : number of the first row of the table, which belongs to row 0 of V.
    """

    kernel: Kernel
    points: AnyArray
    V: Float
    first: int

    @cached_property
    def prepared(self) -> list[PreparedKernel]:
        """The kernel with the points packed, one item per tile of points."""
        Z = np.ascontiguousarray(self.points, dtype=np.float64)
        return [self.kernel.prepare(Z[start : start + _TILE_ROWS]) for start in range(0, len(Z), _TILE_ROWS)]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"KV": (len(self.points), self.V.shape[1])}

    def fold(self, state: State, block: RowBlock) -> State:
        X = np.ascontiguousarray(block.X, dtype=np.float64)
        V = self.V[block.start - self.first : block.stop - self.first]
        for number, prepared in enumerate(self.prepared):
            there = slice(number * _TILE_ROWS, number * _TILE_ROWS + len(prepared.points))
            for panel in _panels(len(X)):
                state["KV"][there] += prepared.block(X[panel]).T @ V[panel]
        return state

    def finalize(self, state: State) -> Float:
        return state["KV"]

    def scratch_bytes(self, rows: int) -> int:
        q, p = self.points.shape
        return int(8 * (rows * p + 3 * q * p + _PANEL_ROWS * _TILE_ROWS))

    def flops_per_row(self) -> float:
        q, p = self.points.shape
        return float(2 * q * (p + self.V.shape[1]))
