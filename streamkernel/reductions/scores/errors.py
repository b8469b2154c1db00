"""Scores of predictions against targets, from sums over rows: means by the row weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import DataError, NumericRangeError
from streamkernel.reductions.contract import Reduction, Result, State
from streamkernel.reductions.row_map import Predictions
from streamkernel.reductions.scores.standard_errors import (
    independent_rows,
    mean_error,
    measured,
    measured_each,
    relative_error,
    root_error,
    share_error,
)
from streamkernel.table import ColumnStatistics, RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Fields, Float

TRANSFORM_BINS = 20
TINY = float(np.finfo(np.float64).tiny)


class Predictive(Protocol):
    """Predictions of rows: their columns, and their costs for the plan."""

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]: ...

    def scratch_bytes(self, rows: int) -> int: ...

    def flops_per_row(self) -> float: ...


class ClassPredictions(Predictive, Protocol):
    """Values of classes, of which the largest gives the class of a row."""

    def values(self, X: AnyArray) -> Float:
        """Values (b, C)."""
        ...


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


def tally(bins: NDArray[np.intp], count: int, weights: Float | None = None) -> Float:
    """Weight of the values in each of `count` bins, per target, (d, count); `bins` (b, d) are bin numbers."""
    d = bins.shape[1]
    places = bins + count * np.arange(d)
    each = None if weights is None else np.repeat(weights, d)
    return np.bincount(places.ravel(), each, minlength=d * count).reshape(d, count).astype(np.float64)


def counted(block: RowBlock) -> RowBlock:
    """The rows of weight > 0 of a block; where there are none, one row of weight 0, whose targets are 0."""
    if block.weights is None or block.weights.all():
        return block
    kept = np.flatnonzero(block.weights)
    if len(kept):
        Y = None if block.Y is None else block.Y[kept]
        return replace(block, X=np.ascontiguousarray(block.X[kept]), Y=Y, weights=block.weights[kept], keys=None)
    Y = None if block.Y is None else np.zeros_like(block.Y[:1])
    return replace(block, X=block.X[:1], Y=Y, weights=np.zeros(1), keys=None)


def total(values: AnyArray, weights: Float | None) -> AnyArray:
    """Sum over the rows of values (b, ...), each times its weight."""
    return np.asarray(values.sum(axis=0) if weights is None else np.tensordot(weights, values, axes=1))


def weight_sums(weights: Float | None) -> State:
    """Number of rows of weight > 0, and sums of the weights and of their squares; nothing without weights."""
    return (
        {} if weights is None else {"weights": np.array([np.count_nonzero(weights), weights.sum(), weights @ weights])}
    )


def rows_of(state: State, rows: float) -> tuple[float, dict[str, float]]:
    """The sum of the weights, by which scores are divided, and the numbers of rows that stand beside the scores.

    These are ``rows``, and with weights ``weight``, their sum, and ``effective_rows = (sum w)^2 / sum w^2``: so many
    rows of equal weight have means of the same variance.

    Parameters
    ----------
    state : sums with those of `weight_sums`.
    rows : number of rows without weights.

    Raises
    ------
    DataError, NumericRangeError
        All weights are 0, or so small that their squares are.
    """
    if "weights" not in state:
        return rows, {"rows": int(rows)}
    kept, weight, squares = (float(value) for value in state["weights"])
    if not weight > 0.0:
        raise DataError("all rows have weight 0, so that they have no mean score; give some a weight above 0")
    if not squares > 0.0:
        raise NumericRangeError(
            f"the weights of all rows sum to {weight:.3g}, so that sums of their squares underflow; divide the weights "
            "by their largest"
        )
    return weight, {"rows": int(kept), "weight": weight, "effective_rows": weight * (weight / squares)}


def error_sums(Y: Float, predicted: Float, weights: Float | None = None) -> State:
    """Sums of the errors of one block, and the statistics of its targets; (b, d) each.

    Beside the squared and absolute errors they are the sums that standard errors need, ``spread`` (5, d): of ``e^4``,
    and with the block's mean of a target taken from y, of ``e^2 y``, ``e^2 y^2``, ``y^3`` and ``y^4``.
    """
    error = Y - predicted
    squares = error**2
    errors = {"squared_error": total(squares, weights), "absolute_error": total(np.abs(error), weights)}
    targets = ColumnStatistics.of(Y, weights).to_arrays("y_")
    # Squares of a broken fit may overflow; scores are then infinite, and have no standard error.
    with np.errstate(over="ignore", invalid="ignore"):
        y = Y - targets["y_mean"]
        values = squares * squares, squares * y, squares * (y * y), y**3, y**4
        spread = np.stack([total(each, weights) for each in values])
    return errors | {"spread": spread} | targets | weight_sums(weights)


def combine_errors(left: State, right: State) -> State:
    """`error_sums` of the rows of both states; other arrays of the states are ignored."""
    names = ["squared_error", "absolute_error", *(["weights"] if "weights" in left else [])]
    targets = ColumnStatistics.from_arrays(left, "y_").merge(ColumnStatistics.from_arrays(right, "y_"))
    sums = {name: left[name] + right[name] for name in names}
    spread = _recentred(left, targets.mean) + _recentred(right, targets.mean)
    return sums | {"spread": spread} | targets.to_arrays("y_")


def _recentred(state: State, mean: Float) -> Float:
    """The sums ``spread`` of `error_sums` with another mean taken from y."""
    targets = ColumnStatistics.from_arrays(state, "y_")
    fourth, once, twice, cubes, quarts = state["spread"]
    errors = state["squared_error"]
    with np.errstate(over="ignore", invalid="ignore"):
        by, squares = targets.mean - mean, targets.total * targets.std**2
        return np.stack(
            [
                fourth,
                once + by * errors,
                twice + by * (2.0 * once + by * errors),
                cubes + by * (3.0 * squares + by * by * targets.total),
                quarts + by * (4.0 * cubes + by * (6.0 * squares + by * by * targets.total)),
            ]
        )


def error_scores(state: State, scale: Sequence[float] = ()) -> Fields:
    """What `rows_of` says, and ``rmse``, ``mae`` and ``r2`` with their standard errors.

    Several targets may be in different units: ``rmse`` and ``mae`` are lists of those of each, and ``r2`` is averaged.
    The standard errors are those of `streamkernel.reductions.scores.standard_errors`. That of R^2, with its expansion
    ``v = (e^2 - (1 - R^2) (y - mean y)^2) / var y``, is NaN for a constant target.

    Parameters
    ----------
    scale : (d,) standard deviation of each target in the rows of the fit; with it several targets have
        ``relative_rmse``, too.
    """
    targets = ColumnStatistics.from_arrays(state, "y_")
    weight, rows = rows_of(state, targets.count)
    m = independent_rows(rows)
    square, absolute = state["squared_error"] / weight, state["absolute_error"] / weight
    fourth, _, both, _, quarts = state["spread"] / weight
    variance = targets.std**2
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        left = square / variance
        v2 = (fourth - 2.0 * left * both + left * left * quarts) / (variance * variance)
    rmse, rmse_se = np.sqrt(square), root_error(square, fourth, m)
    scaled = relative_error(rmse, rmse_se, np.asarray(scale)) if len(scale) > 1 else None
    return {
        **rows,
        **({} if scaled is None else measured("relative_rmse", *scaled)),
        **measured_each("rmse", rmse, rmse_se),
        **measured_each("mae", absolute, mean_error(absolute, square, m)),
        "r2": share_explained(state["squared_error"], weight * variance, rows["rows"]),
        "r2_se": float(np.mean(mean_error(np.zeros_like(v2), v2, m))),
    }


def error_bytes(d: int) -> int:
    """Bytes of `error_sums` for d targets."""
    return 96 * d + 48


def share_explained(loss: Float, least: Float, rows: float) -> float:
    """``1 - loss / least``, averaged over targets (d,); `least` is the loss of the best constant.

    If `least` is 0, the share is 1 for a loss of 0, and 0 for any other loss, and fewer than two rows have none, NaN:
    both as in scikit-learn's ``r2_score``.

    Parameters
    ----------
    rows : number of rows of weight > 0.
    """
    if rows < 2:
        return float("nan")
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(least > 0.0, loss / least, np.where(loss > 0.0, 1.0, 0.0))
    return float((1.0 - share).mean())


@dataclass(frozen=True)
class RegressionScores(PredictionScores[Fields]):
    """Root mean squared error, mean absolute error and R^2, with their standard errors; see `error_scores`.

    ``R^2 = 1 - sum (y - f)^2 / sum (y - mean y)^2`` per target, as scikit-learn's ``r2_score``.
    """

    predictions: Predictions
    scale: Sequence[float] = ()

    def map_block(self, block: RowBlock) -> State:
        block = counted(block)
        assert block.Y is not None
        return error_sums(block.Y, self.predictions.values(block.X), block.weights)

    def combine(self, left: State, right: State) -> State:
        return combine_errors(left, right)

    def finalize(self, state: State) -> Fields:
        return error_scores(state, self.scale)

    def state_bytes(self) -> int:
        return error_bytes(self.predictions.coefficients.shape[1])


@dataclass(frozen=True)
class ClassificationScores(PredictionScores[dict[str, float]]):
    """Accuracy, the share of rows whose largest predicted value is that of their class, and its standard error."""

    predictions: ClassPredictions

    def map_block(self, block: RowBlock) -> State:
        assert block.Y is not None
        right = self.predictions.values(block.X).argmax(axis=1) == block.Y.argmax(axis=1)
        found = np.count_nonzero(right) if block.weights is None else block.weights @ right
        return {"totals": np.array([len(right), found], dtype=np.float64), **weight_sums(block.weights)}

    def finalize(self, state: State) -> dict[str, float]:
        weight, rows = rows_of(state, float(state["totals"][0]))
        accuracy = state["totals"][1] / weight
        return {**rows, **measured("accuracy", accuracy, share_error(accuracy, independent_rows(rows)))}

    def state_bytes(self) -> int:
        return 40
