"""Any sums, kept apart by folds of the rows: one sweep gives the sums of each fold and those of all other rows.

The rows of a block are divided by fold, and each part is added to the sums of its fold: a row is worked on once, as
without folds (ALGORITHMS 20). Conjugate gradients need ``H_T v`` of the rows that are trained on; with ``H_v v`` of the
held-out rows beside it, the error on these follows every iterate without another look at the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.sums._fold_weights import GROUPS, effective_rows, group_weights
from streamkernel.table import RowBlock
from streamkernel.table.parts.folds import Folds
from streamkernel.type_aliases import Float, Int

Part = TypeVar("Part")


@dataclass(frozen=True)
class FoldParts(Generic[Part]):
    """Sums by fold.

    Attributes
    ----------
    held : V results, one for each validation fold.
    trained : result of the rows that are in none.
    effective : (V,) effective number of independent rows in each fold: copies and weights count as one row.
    """

    held: tuple[Part, ...]
    trained: Part
    effective: Float


@dataclass(frozen=True)
class EachFold(Sums[FoldParts[Part]], Generic[Part]):
    """Accumulate `FoldParts` over the rows of a table with keys.

    Parameters
    ----------
    work : sums of each fold.
    folds : assignment of the rows to folds.
    """

    work: Sums[Part]
    folds: Folds

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        count = self.folds.count
        parts = {name: (count + 1, *shape) for name, shape in self.work.shapes.items()}
        return {**parts, "group_weights": (count, GROUPS)}

    @property
    def symmetric(self) -> frozenset[str]:
        return self.work.symmetric

    def fold(self, state: State, block: RowBlock) -> State:
        if block.keys is None:
            raise ValueError("folds need keys of the rows: give a table with keys")
        of = self.folds.of(block.keys)
        for fold in range(self.folds.count + 1):
            rows = np.flatnonzero(of == fold)
            if not len(rows):
                continue
            self.work.fold(self._part(state, fold), rows_of(block, rows))
            if fold < self.folds.count:
                state["group_weights"][fold] += group_weights(self.folds, block.keys[rows], block.row_weights[rows])
        return state

    def _part(self, state: State, fold: int) -> State:
        """The sums of one fold, as views."""
        return {name: state[name][fold] for name in self.work.shapes}

    def finalize(self, state: State) -> FoldParts[Part]:
        *held, trained = (self.work.finalize(self._part(state, fold)) for fold in range(self.folds.count + 1))
        return FoldParts(tuple(held), trained, effective_rows(state["group_weights"]))

    def scratch_bytes(self, rows: int) -> int:
        # Folds and positions; the rows of a fold are a copy of a part of the block, which is wider than its scratch.
        return int(2 * self.work.scratch_bytes(rows) + 8 * rows * 10)

    def flops_per_row(self) -> float:
        return self.work.flops_per_row()


def rows_of(block: RowBlock, positions: Int) -> RowBlock:
    """Some rows of a block, without their keys."""
    return RowBlock(
        block.start,
        block.X[positions],
        None if block.Y is None else block.Y[positions],
        None if block.weights is None else block.weights[positions],
    )
