"""Scores of one class: the share of outliers, and the mean decision value. They need no targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streamkernel.reductions.contract import State
from streamkernel.reductions.scores.errors import PredictionScores, Predictive, counted, rows_of, total, weight_sums
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float


class Deciding(Predictive, Protocol):
    """Decision values of rows, below 0 for outliers."""

    def values(self, X: AnyArray) -> Float:
        """Decision values (b, 1)."""
        ...


@dataclass(frozen=True)
class OneClassScores(PredictionScores[dict[str, float]]):
    """``outliers``, the share of rows with a decision value below 0, and ``decision``, the mean of these values."""

    predictions: Deciding

    def map_block(self, block: RowBlock) -> State:
        block = counted(block)
        f = self.predictions.values(block.X)[:, 0]
        sums = total(np.stack([f < 0.0, f], axis=1), block.weights)
        return {"totals": np.append(float(len(f)), sums), **weight_sums(block.weights)}

    def finalize(self, state: State) -> dict[str, float]:
        weight, rows = rows_of(state, float(state["totals"][0]))
        outliers, decision = (float(value) for value in state["totals"][1:] / weight)
        return {**rows, "outliers": outliers, "decision": decision}

    def state_bytes(self) -> int:
        return 48
