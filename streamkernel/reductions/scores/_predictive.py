"""Parts that all scores of predicted distributions share: the interface of the predictor, and counts in bins."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamkernel.reductions.contract import Reduction, Result
from streamkernel.type_aliases import AnyDType, Float

TRANSFORM_BINS = 20
TINY = float(np.finfo(np.float64).tiny)


class Predictive(Protocol):
    """Predictions of rows: their columns, and their costs for the plan."""

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]: ...

    def scratch_bytes(self, rows: int) -> int: ...

    def flops_per_row(self) -> float: ...


class PredictionScores(Reduction[Result]):
    """Base of scores, whose work is that of the predictions."""

    predictions: Any

    def scratch_bytes(self, rows: int) -> int:
        return int(self.predictions.scratch_bytes(rows))

    def flops_per_row(self) -> float:
        return float(self.predictions.flops_per_row())


def width_of(predictions: Predictive, column: str = "prediction") -> int:
    """Number of values per row in a column: targets in "prediction", classes in "probability"."""
    width, _ = predictions.columns[column]
    return 1 if width is None else width


def bins_of(share: Float, count: int) -> NDArray[np.intp]:
    """Number of the bin that holds each value, among `count` equal bins of [0, 1]; the value 1 is in the last bin."""
    return np.minimum((count * share).astype(np.intp), count - 1)


def tally(bins: NDArray[np.intp], count: int) -> Float:
    """Number of values in each of `count` bins, per target, (d, count); `bins` (b, d) are bin numbers."""
    d = bins.shape[1]
    places = bins + count * np.arange(d)
    return np.bincount(places.ravel(), minlength=d * count).reshape(d, count).astype(np.float64)
