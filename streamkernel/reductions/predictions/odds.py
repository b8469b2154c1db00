"""Class probabilities from predicted log odds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from streamkernel.reductions.row_map import Predictions, ProbabilityMap
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float


def probabilities_of_indicators(values: Float) -> Float:
    """Softmax of the values of each row, (b, C).

    For two classes with the values ``(1 - f) / 2, (1 + f) / 2``, the second probability is ``1 / (1 + e^-f)``.
    """
    return np.asarray(softmax(values, axis=1))


@dataclass(frozen=True)
class OddsProbabilities(ProbabilityMap):
    """Softmax of the predictions of each row; the predicted class is that of the largest prediction.

    Parameters
    ----------
    indicators : Predictions of one function per class; for two classes ``(1 - f) / 2, (1 + f) / 2``, f the log odds of
        the second class.
    """

    indicators: Predictions

    @property
    def classes(self) -> int:
        return int(self.indicators.coefficients.shape[1])

    def probabilities(self, X: AnyArray) -> Float:
        return probabilities_of_indicators(self.indicators.values(X))

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        values = self.indicators.values(block.X)
        return {"probability": probabilities_of_indicators(values), "prediction": values.argmax(axis=1)}

    def scratch_bytes(self, rows: int) -> int:
        return self.indicators.scratch_bytes(rows) + 24 * rows * self.classes

    def flops_per_row(self) -> float:
        return self.indicators.flops_per_row() + 50.0 * self.classes
