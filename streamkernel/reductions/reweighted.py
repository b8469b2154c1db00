"""A reduction with the weights of all rows multiplied by one factor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkernel.reductions.contract import AnyReduction, Reduction, State
from streamkernel.table import RowBlock


@dataclass(frozen=True)
class Reweighted(Reduction[Any]):
    """The reduction `work`, as if every row occurred `times` times.

    Parameters
    ----------
    work : reduction that uses row weights.
    times : factor of the row weights.
    """

    work: AnyReduction
    times: float

    @property
    def row_multiple(self) -> int:
        return self.work.row_multiple

    def _weighed(self, block: RowBlock) -> RowBlock:
        weights = np.full(len(block), self.times) if block.weights is None else self.times * block.weights
        return replace(block, weights=weights)

    def map_block(self, block: RowBlock) -> State:
        return self.work.map_block(self._weighed(block))

    def combine(self, left: State, right: State) -> State:
        return self.work.combine(left, right)

    def fold(self, state: State, block: RowBlock) -> State:
        return self.work.fold(state, self._weighed(block))

    def finalize(self, state: State) -> Any:
        return self.work.finalize(state)

    def state_bytes(self) -> int:
        return self.work.state_bytes()

    def scratch_bytes(self, rows: int) -> int:
        return self.work.scratch_bytes(rows) + 8 * rows

    def flops_per_row(self) -> float:
        return self.work.flops_per_row()
