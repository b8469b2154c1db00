"""What scores of predicted distributions share: what predicts them, and counting in bins."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["TINY", "TRANSFORM_BINS", "Array", "Predictive", "bins_of", "tally", "width_of"]

Array = NDArray[np.float64]

TRANSFORM_BINS = 20
TINY = float(np.finfo(np.float64).tiny)


class Predictive(Protocol):
    """What the plan asks of predictions, and the widths of their columns."""

    @property
    def columns(self) -> dict[str, tuple[int | None, np.dtype[Any]]]: ...

    def scratch_bytes(self, rows: int) -> int: ...

    def flops_per_row(self) -> float: ...


def width_of(predictions: Predictive, column: str = "prediction") -> int:
    """Numbers a row has in a column: of targets in "prediction", of classes in "probability"."""
    width, _ = predictions.columns[column]
    return 1 if width is None else width


def bins_of(share: Array, count: int) -> NDArray[np.intp]:
    """In which of `count` equal bins of [0, 1] values lie; 1 in the last."""
    return np.minimum((count * share).astype(np.intp), count - 1)


def tally(bins: NDArray[np.intp], count: int) -> Array:
    """How often each of `count` bins occurs, (d, count), by target; `bins` (b, d)."""
    d = bins.shape[1]
    places = bins + count * np.arange(d)
    return np.bincount(places.ravel(), minlength=d * count).reshape(d, count).astype(np.float64)
