"""Scores of predictions against targets, from sums over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamkernel.reductions.contract import Reduction, Result, State
from streamkernel.reductions.row_map import Predictions
from streamkernel.table import ColumnStatistics, RowBlock
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


def error_sums(Y: Float, predicted: Float) -> State:
    """Sums of squared and absolute errors of one block, and the statistics of its targets; both arguments (b, d)."""
    error = Y - predicted
    errors = {"squared_error": (error**2).sum(axis=0), "absolute_error": np.abs(error).sum(axis=0)}
    return errors | ColumnStatistics.of(Y).to_arrays("y_")


def combine_errors(left: State, right: State) -> State:
    """`error_sums` of the rows of both states; other arrays of the states are ignored."""
    errors = {name: left[name] + right[name] for name in ("squared_error", "absolute_error")}
    spread = ColumnStatistics.from_arrays(left, "y_").merge(ColumnStatistics.from_arrays(right, "y_"))
    return errors | spread.to_arrays("y_")


def error_scores(state: State) -> dict[str, float]:
    """The scores ``rows``, ``rmse``, ``mae`` and ``r2``, averaged over targets."""
    targets = ColumnStatistics.from_arrays(state, "y_")
    rows = targets.count
    return {
        "rows": rows,
        "rmse": float(np.sqrt(state["squared_error"] / rows).mean()),
        "mae": float((state["absolute_error"] / rows).mean()),
        "r2": share_explained(state["squared_error"], rows * targets.std**2),
    }


def error_bytes(d: int) -> int:
    """Bytes of `error_sums` for d targets."""
    return 64 * d


def share_explained(loss: Float, least: Float) -> float:
    """``1 - loss / least``, averaged over targets (d,); `least` is the loss of the best constant.

    If `least` is 0, the share is 1 for a loss of 0, and 0 for any other loss, as in scikit-learn's ``r2_score``.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(least > 0.0, loss / least, np.where(loss > 0.0, 1.0, 0.0))
    return float((1.0 - share).mean())


@dataclass(frozen=True)
class RegressionScores(PredictionScores[dict[str, float]]):
    """Root mean squared error, mean absolute error and R^2, averaged over targets.

    ``R^2 = 1 - sum (y - f)^2 / sum (y - mean y)^2`` per target, as scikit-learn's ``r2_score``.
    """

    predictions: Predictions

    def map_block(self, block: RowBlock) -> State:
        assert block.Y is not None
        return error_sums(block.Y, self.predictions.values(block.X))

    def combine(self, left: State, right: State) -> State:
        return combine_errors(left, right)

    def finalize(self, state: State) -> dict[str, float]:
        return error_scores(state)

    def state_bytes(self) -> int:
        return error_bytes(self.predictions.coefficients.shape[1])


@dataclass(frozen=True)
class ClassificationScores(PredictionScores[dict[str, float]]):
    """Accuracy: share of rows whose largest predicted value is that of their class."""

    predictions: Predictions

    def map_block(self, block: RowBlock) -> State:
        assert block.Y is not None
        right = self.predictions.values(block.X).argmax(axis=1) == block.Y.argmax(axis=1)
        return {"totals": np.array([len(right), np.count_nonzero(right)], dtype=np.float64)}

    def finalize(self, state: State) -> dict[str, float]:
        rows, right = state["totals"]
        return {"rows": int(rows), "accuracy": float(right / rows)}

    def state_bytes(self) -> int:
        return 16
