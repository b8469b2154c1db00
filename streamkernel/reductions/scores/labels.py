"""Scores of labels of rows that may have several: sums of wrong labels, and of rows whose labels are all right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.reductions.contract import State
from streamkernel.reductions.predictions.labels import THRESHOLD
from streamkernel.reductions.row_map import Predictions
from streamkernel.reductions.scores.errors import PredictionScores, rows_of, total, weight_sums
from streamkernel.table import RowBlock


@dataclass(frozen=True)
class LabelScores(PredictionScores[dict[str, Any]]):
    """Predicted labels against indicators Y (b, d), both 0 or 1; means by the row weights.

    ``accuracy``: the share of rows whose labels are all right (subset accuracy, as scikit-learn's ``accuracy_score``).
    ``hamming_loss``: the share of wrong labels among all ``rows * d``, as its ``hamming_loss``. ``label_accuracy``: the
    share of rows that are right in each label, d of them.
    """

    predictions: Predictions

    def map_block(self, block: RowBlock) -> State:
        assert block.Y is not None
        right = (self.predictions.values(block.X) > THRESHOLD) == (block.Y > THRESHOLD)
        return {
            "rows": np.array([float(len(right))]),
            "all_right": np.asarray(total(right.all(axis=1).astype(np.float64), block.weights)),
            "right": total(right.astype(np.float64), block.weights),
            **weight_sums(block.weights),
        }

    def finalize(self, state: State) -> dict[str, Any]:
        weight, rows = rows_of(state, float(state["rows"][0]))
        right = state["right"] / weight
        return {
            **rows,
            "accuracy": float(state["all_right"] / weight),
            "hamming_loss": float(1.0 - right.mean()),
            "label_accuracy": right.tolist(),
        }

    def state_bytes(self) -> int:
        return 8 * (int(self.predictions.coefficients.shape[1]) + 5)

    def scratch_bytes(self, rows: int) -> int:
        return super().scratch_bytes(rows) + 12 * rows * int(self.predictions.coefficients.shape[1])
