"""Predicted distributions that are a plain function of the row: what scores are made of in tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.table import RowBlock

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Predicted:
    """Any distribution; `width` is the number of targets, or of classes."""

    width: int

    @property
    def columns(self) -> dict[str, tuple[int | None, np.dtype[Any]]]:
        size, dtype = None if self.width == 1 else self.width, np.dtype(np.float64)
        return {"prediction": (size, dtype), "probability": (self.width, dtype)}

    def scratch_bytes(self, rows: int) -> int:
        return 16 * rows * self.width

    def flops_per_row(self) -> float:
        return 10.0 * self.width

    def _phases(self, X: NDArray[Any]) -> Float:
        """(b, width), between -1 and 1."""
        return np.asarray(np.sin(X[:, :1].astype(np.float64) + np.arange(1, self.width + 1)))


class Normal(Predicted):
    def moments(self, X: NDArray[Any]) -> tuple[Float, Float]:
        phases = self._phases(X)
        return phases, 0.2 + phases**2


class Classes(Predicted):
    def probabilities(self, X: NDArray[Any]) -> Float:
        weights = np.exp(4.0 * self._phases(X))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def map_block(self, block: RowBlock) -> dict[str, NDArray[Any]]:
        found = self.probabilities(block.X)
        return {"probability": found, "prediction": found.argmax(axis=1)}


class Rates(Predicted):
    def values(self, X: NDArray[Any]) -> Float:
        return np.asarray(np.exp(1.0 + self._phases(X)))
