"""Probabilities of two classes from a function that is the logarithm of their odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from streamkernel.reductions.rows import Predictions, RowMap
from streamkernel.table import RowBlock

__all__ = ["OddsProbabilities", "probabilities_of_indicators"]

Float = NDArray[np.float64]


def probabilities_of_indicators(values: Float) -> Float:
    """(b, 2) of indicators ``(1 - f) / 2, (1 + f) / 2``: ``1 / (1 + e^f)`` and ``1 / (1 + e^-f)``."""
    f = values[:, 1] - values[:, 0]
    return np.stack([expit(-f), expit(f)], axis=1)


@dataclass(frozen=True)
class OddsProbabilities(RowMap):
    """Probabilities of both classes, and the code of the likelier.

    Parameters
    ----------
    indicators : predictions of d = 2 indicators ``(1 - f) / 2, (1 + f) / 2``, f the logarithm of the odds.
    """

    indicators: Predictions

    @property
    def columns(self) -> dict[str, tuple[int | None, np.dtype[Any]]]:
        return {"probability": (2, np.dtype(np.float64)), "prediction": (None, np.dtype(np.int64))}

    def probabilities(self, X: NDArray[Any]) -> Float:
        """(b, 2), rows that sum to 1."""
        return probabilities_of_indicators(self.indicators.values(X))

    def check_values(self, X: NDArray[Any]) -> dict[str, Float]:
        """What is compared with the targets."""
        return {"probability": self.probabilities(X)}

    def map_block(self, block: RowBlock) -> dict[str, NDArray[Any]]:
        values = self.indicators.values(block.X)
        return {"probability": probabilities_of_indicators(values), "prediction": values.argmax(axis=1)}

    def scratch_bytes(self, rows: int) -> int:
        return self.indicators.scratch_bytes(rows) + 48 * rows

    def flops_per_row(self) -> float:
        return self.indicators.flops_per_row() + 100.0
