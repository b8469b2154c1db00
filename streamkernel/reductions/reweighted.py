"""Reductions over the same rows with other weights."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkernel.reductions.contract import AnyReduction, Reduction, Result, State
from streamkernel.table import Folds, RowBlock


@dataclass(frozen=True)
class OtherWeights(Reduction[Result]):
    """The reduction `work` over rows with other weights, which it must use."""

    work: AnyReduction

    @abstractmethod
    def weighed(self, block: RowBlock) -> RowBlock:
        """The block with other weights."""

    @property
    def row_multiple(self) -> int:
        return self.work.row_multiple

    def empty(self) -> State | None:
        return self.work.empty()

    def map_block(self, block: RowBlock) -> State:
        return self.work.map_block(self.weighed(block))

    def combine(self, left: State, right: State) -> State:
        return self.work.combine(left, right)

    def fold(self, state: State, block: RowBlock) -> State:
        return self.work.fold(state, self.weighed(block))

    @property
    def symmetric(self) -> frozenset[str]:
        return self.work.symmetric

    @property
    def lower_bytes(self) -> int:
        return self.work.lower_bytes

    @property
    def adds_arrays(self) -> bool:
        return self.work.adds_arrays

    def emptied(self, state: State) -> State | None:
        return self.work.emptied(state)

    def finalize(self, state: State) -> Any:
        return self.work.finalize(state)

    def state_bytes(self) -> int:
        return self.work.state_bytes()

    def scratch_bytes(self, rows: int) -> int:
        return self.work.scratch_bytes(rows) + 8 * rows

    def flops_per_row(self) -> float:
        return self.work.flops_per_row()


@dataclass(frozen=True)
class Reweighted(OtherWeights[Any]):
    """The reduction `work`, as if every row occurred `times` times.

    Parameters
    ----------
    work : reduction that uses row weights.
    times : factor of the row weights.
    """

    times: float

    def weighed(self, block: RowBlock) -> RowBlock:
        weights = np.full(len(block), self.times) if block.weights is None else self.times * block.weights
        return replace(block, weights=weights)


@dataclass(frozen=True)
class WithoutHeldOut(OtherWeights[Any]):
    """The reduction `work` with weight 0 for rows in validation folds: their targets do not change its result.

    Parameters
    ----------
    work : reduction that uses row weights.
    folds : folds of the rows, whose table has keys.
    """

    folds: Folds

    def weighed(self, block: RowBlock) -> RowBlock:
        assert block.keys is not None, "folds need a table with keys"
        return replace(block, weights=np.where(self.folds.held_out(block.keys), 0.0, block.row_weights))
