"""Scores of several models, each on the rows of the fold that it was not fitted to, in one sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.reductions.contract import AnyReduction, Reduction, State
from streamkernel.reductions.sums.each_fold import rows_of
from streamkernel.table import RowBlock
from streamkernel.table.parts.folds import Folds

_ROWS = "rows"  # number of rows of each fold in a state


@dataclass(frozen=True)
class FoldScores(Reduction[tuple[Any, ...]]):
    """Result v is that of ``works[v]`` over the rows of validation fold v, None without rows; other rows are left out.

    A row is predicted once, by one model, so that V models cost what one does.

    Parameters
    ----------
    works : V scores, one for each validation fold.
    folds : assignment of the rows, whose table has keys, to folds.
    """

    works: tuple[AnyReduction, ...]
    folds: Folds

    def map_block(self, block: RowBlock) -> State:
        if block.keys is None:
            raise ValueError("folds need keys of the rows: give a table with keys")
        of = self.folds.of(block.keys)
        state = {_ROWS: np.bincount(of, minlength=len(self.works) + 1)[: len(self.works)].astype(np.float64)}
        for fold, work in enumerate(self.works):
            rows = np.flatnonzero(of == fold)
            if len(rows):
                state |= _named(fold, work.map_block(rows_of(block, rows)))
        return state

    def combine(self, left: State, right: State) -> State:
        state = {_ROWS: left[_ROWS] + right[_ROWS]}
        for fold, work in enumerate(self.works):
            parts = [_part(side, fold) for side in (left, right) if side[_ROWS][fold]]
            if parts:
                state |= _named(fold, parts[0] if len(parts) == 1 else work.combine(*parts))
        return state

    def finalize(self, state: State) -> tuple[Any, ...]:
        rows = state[_ROWS]
        return tuple(work.finalize(_part(state, v)) if rows[v] else None for v, work in enumerate(self.works))

    def state_bytes(self) -> int:
        return sum(8 + work.state_bytes() for work in self.works)

    def scratch_bytes(self, rows: int) -> int:
        # The rows of a fold are a copy of a part of the block; keys, folds and positions.
        return int(2 * max(work.scratch_bytes(rows) for work in self.works) + 8 * rows * 10)

    def flops_per_row(self) -> float:
        return max(work.flops_per_row() for work in self.works)


def _named(fold: int, state: State) -> State:
    """The state of one fold, under names of its own."""
    return {f"{fold}_{name}": values for name, values in state.items()}


def _part(state: State, fold: int) -> State:
    own = f"{fold}_"
    return {name.removeprefix(own): values for name, values in state.items() if name.startswith(own)}
