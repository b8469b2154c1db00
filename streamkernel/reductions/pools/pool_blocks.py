"""The sums of `PoolGram` by pairs of blocks of columns, which different workers may compute.

The columns ``[G, R, Yc]`` are cut into the features G of the basis and four blocks of candidates, the targets with the
last one. The sums of each pair of blocks need these two and G, from which the residual columns R follow. Every block
and every pair is computed by the same calls with the same shapes, by itself or with all others, so that the bits are
the same: a process computes each block of columns once for all pairs, and many workers a pair each.

Beside more tasks for many workers, the states of a pair are small: all of 2,000 candidates have 25 MB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import add_product, block_array, subtract_product, syrk
from streamkernel.reductions.contract import Divided, Reduction, SentAsFields, State
from streamkernel.reductions.pools.pool import PoolColumns, PoolSums, without_denormals
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float

_CUTS = 4  # blocks of candidates


@dataclass(frozen=True)
class _Block(SentAsFields):
    """Some of the columns: those of a part of the pool, with the targets in the last one.

    Parameters
    ----------
    basis : the n functions that are projected out.
    columns : the raw columns, which know no basis.
    first : position of the first one among all columns.
    """

    basis: Basis
    columns: PoolColumns
    first: int

    @cached_property
    def factor(self) -> AnyArray:
        """Features of the candidates, (k, n) in the dtype of the columns."""
        features = without_denormals(self.basis.features(self.columns.pool.points), self.columns.precision)
        return np.ascontiguousarray(features, dtype=self.columns.precision)

    @property
    def where(self) -> slice:
        return slice(self.first, self.first + self.columns.width)

    def of(self, block: RowBlock, G: AnyArray) -> AnyArray:
        """``sqrt(w) R``, (b, k), or ``sqrt(w) [R, Yc]``, of the features G (b, n)."""
        out = block_array(f"columns from {self.first} on", (len(block), self.columns.width), self.columns.precision)
        columns = self.columns.raw(block, out)
        if len(self.basis):
            R = columns[:, : len(self.columns.pool)]
            subtract_product(G, self.factor, into=R)
            without_denormals(R, self.columns.precision)
        return self.columns.weigh(columns, block)


@dataclass(frozen=True)
class PoolBlocks(SentAsFields, Reduction[PoolSums]):
    """Accumulate the Gram matrix of ``[G, R, Yc]`` by pairs of blocks.

    Parameters
    ----------
    columns : the columns, without a constant.
    rows : number of rows after which the same ones come again, each time for the next pair; 0 for all pairs at once.
    """

    columns: PoolColumns
    rows: int = 0

    @cached_property
    def _features(self) -> _Block:
        """The raw columns of the basis."""
        return self._block(self.columns.basis, np.zeros(0), 0)

    @cached_property
    def _blocks(self) -> list[_Block]:
        """The blocks in the order of their columns; that of the basis is left out where this is empty."""
        n, pool = len(self.columns.basis), self.columns.pool
        edges = [len(pool) * cut // _CUTS for cut in range(_CUTS + 1)]
        blocks = [self._features] if n else []
        for first, stop in pairwise(edges):
            centre = self.columns.centre if stop == len(pool) else np.zeros(0)
            part = Basis(pool.kernel, pool.points[first:stop], pool.rows[first:stop])
            blocks.append(self._block(part, centre, n + first))
        return blocks

    def _block(self, pool: Basis, centre: Float, first: int) -> _Block:
        basis = self.columns.basis
        none = Basis.empty(basis.kernel, basis.points.shape[1], basis.points.dtype)
        return _Block(basis, replace(self.columns, basis=none, pool=pool, centre=centre), first)

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        count = len(self._blocks)
        return [(i, j) for i in range(count) for j in range(i, count)]

    def _widths(self, pair: tuple[int, int]) -> tuple[int, int]:
        return self._blocks[pair[0]].columns.width, self._blocks[pair[1]].columns.width

    def empty(self) -> State:
        return {}

    def fold(self, state: State, block: RowBlock) -> State:
        number = block.start // self.rows if self.rows else 0
        pairs = [self._pairs[number]] if self.rows else self._pairs
        made = self._made(block, {each for pair in pairs for each in pair})
        for i, j in pairs:
            name = _name(i, j)
            if name not in state:
                state[name] = np.zeros(self._widths((i, j)), self.columns.precision)
            if i == j:
                syrk(made[i], into=state[name])
            else:
                add_product(made[i], made[j], into=state[name])
        if number == 0:
            state["totals"] = state.get("totals", np.zeros(2)) + self.columns.totals(block)
        return state

    def _made(self, block: RowBlock, wanted: set[int]) -> dict[int, AnyArray]:
        """The columns of these blocks."""
        precision, basis = self.columns.precision, self.columns.basis
        if not len(basis):
            return {each: self._blocks[each].of(block, np.zeros((0, 0))) for each in wanted}
        # Whitening divides by small pivots, so it is in float64 for either precision of the columns.
        shape = len(block), len(basis)
        whitened, G = block_array("features", shape), block_array("features of columns", shape, precision)
        whitened[:] = self._features.columns.raw(block, G)
        basis.whiten(whitened)
        G[:] = without_denormals(whitened, precision)
        made = {each: self._blocks[each].of(block, G) for each in wanted if each}
        if 0 in wanted:
            made[0] = self.columns.weigh(G, block)
        return made

    def combine(self, left: State, right: State) -> State:
        both = {name: left[name] + right[name] for name in left if name in right}
        return {**left, **right, **both}

    def divided(self, rows: int) -> Divided[PoolSums]:
        return Divided(replace(self, rows=rows), len(self._pairs), self._part_columns)

    def finalize(self, state: State) -> PoolSums:
        gram = np.empty((self.columns.width, self.columns.width), self.columns.precision)
        for i, j in self._pairs:
            gram[self._blocks[i].where, self._blocks[j].where] = state.pop(_name(i, j))  # the upper triangle
        return PoolSums.of(self.columns, gram, state["totals"])

    @property
    def precision(self) -> AnyDType:
        return self.columns.precision

    def state_bytes(self) -> int:
        return self.columns.precision.itemsize * sum(math.prod(self._widths(pair)) for pair in self._pairs) + 16

    def share_bytes(self, share: float) -> int:
        return int(self.state_bytes() * max(share, 1.0 / len(self._pairs))) if self.rows else self.state_bytes()

    def scratch_bytes(self, rows: int) -> int:
        return self.columns.scratch_bytes(rows)

    @property
    def _part_columns(self) -> int:
        """Columns of a pair of two blocks of candidates, and those of the basis."""
        return len(self.columns.basis) + 2 * -(-len(self.columns.pool) // _CUTS)

    def flops_per_row(self) -> float:
        if not self.rows:
            return self.columns.flops_per_row()
        n, p = len(self.columns.basis), self.columns.pool.points.shape[1]
        k = -(-len(self.columns.pool) // _CUTS)
        return float(n * n + 4 * n * k + 2 * k * k + 2 * self._part_columns * p)


def _name(i: int, j: int) -> str:
    return f"{i} {j}"
