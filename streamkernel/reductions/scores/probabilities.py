"""Scores of class probabilities against labels: accuracy, log loss, Brier score and calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streamkernel.reductions.contract import State
from streamkernel.reductions.scores.errors import (
    PredictionScores,
    Predictive,
    bins_of,
    rows_of,
    total,
    weight_sums,
    width_of,
)
from streamkernel.reductions.scores.standard_errors import independent_rows, mean_error, measured, share_error
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Bool, Float

_CONFIDENCE_BINS = 15  # as in Guo et al. (2017) and most later papers


class ClassPredictive(Predictive, Protocol):
    """Predictions with a probability for every class."""

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        """Class probabilities (b, C), each row of sum 1, as "probability", and codes of classes as "prediction"."""
        ...


@dataclass(frozen=True)
class Reliability:
    """Predicted probabilities against observed frequencies.

    Attributes
    ----------
    scalars : those of `rows_of`; ``accuracy``, ``log_loss``, ``brier``, of each of these the standard error, such as
        ``accuracy_se``, and ``calibration_error``.
    predicted, observed : (15,) mean probability, and share of the rows in the predicted class, for each fifteenth of
        [0, 1]; NaN for a bin without rows. The predicted class is the second of two classes, and the most probable
        class of each row of more than two.
    count : (15,) weight of the rows in each bin.
    """

    scalars: dict[str, float]
    predicted: Float
    observed: Float
    count: Float


@dataclass(frozen=True)
class ProbabilityScores(PredictionScores[Reliability]):
    """Scores of class probabilities P (b, C) against indicators Y (b, C).

    ``log_loss = -mean log p_true``, probabilities clipped to ``[eps, 1 - eps]`` of float64, as in scikit-learn.
    ``brier``: for two classes ``mean (p - y)^2`` of the second class; for more ``mean sum_c (p_c - y_c)^2`` (Brier
    1950), between 0 and 2; both as scikit-learn's ``brier_score_loss``. ``calibration_error`` is the expected
    calibration error of Guo et al. (2017), eq. (3), ``sum_k (rows_k / rows) |observed_k - predicted_k|`` over the bins
    of `Reliability`.
    """

    predictions: ClassPredictive

    def map_block(self, block: RowBlock) -> State:
        assert block.Y is not None
        found = self.predictions.map_block(block)
        return _probability_sums(block.Y, found["probability"], found["prediction"], block.weights)

    def finalize(self, state: State) -> Reliability:
        return _reliability(state)

    def state_bytes(self) -> int:
        return 8 * (9 + 3 * _CONFIDENCE_BINS)

    def scratch_bytes(self, rows: int) -> int:
        return super().scratch_bytes(rows) + 32 * rows * width_of(self.predictions, "probability")


def score_probabilities(Y: Float, P: Float, weights: Float | None = None) -> Reliability:
    """Same scores as `ProbabilityScores`, for indicators and probabilities in memory, (b, C) each."""
    return _reliability(_probability_sums(Y, P, P.argmax(axis=1), weights))


def _probability_sums(Y: Float, P: Float, codes: AnyArray, weights: Float | None = None) -> State:
    rows, true = np.arange(len(Y)), Y.argmax(axis=1)
    eps = np.finfo(np.float64).eps
    two = Y.shape[1] == 2
    squares = ((P - Y) ** 2).sum(axis=1) * (0.5 if two else 1.0)
    log_loss = -np.log(np.clip(P[rows, true], eps, 1.0 - eps))
    claimed, came = (P[:, 1], true == 1) if two else (P.max(axis=1), P.argmax(axis=1) == true)
    bins = bins_of(claimed, _CONFIDENCE_BINS)
    return {
        "totals": np.array(
            [
                len(Y),
                total(codes == true, weights),
                *(total(values, weights) for values in (log_loss, squares, log_loss**2, squares**2)),
            ]
        ),
        "bins": np.array(
            [
                np.bincount(bins, weights=values, minlength=_CONFIDENCE_BINS)
                for values in _weighted(claimed, came, weights)
            ]
        ),
        **weight_sums(weights),
    }


def _weighted(claimed: Float, came: Bool, weights: Float | None) -> tuple[AnyArray, AnyArray, Float | None]:
    """What is added up in each bin: probabilities, rows of the predicted class, and rows, each by its weight."""
    return (claimed, came, None) if weights is None else (weights * claimed, weights * came, weights)


def _reliability(state: State) -> Reliability:
    count_of_rows, *sums = state["totals"]
    claimed, came, count = state["bins"]
    weight, rows = rows_of(state, count_of_rows)
    m, (accuracy, log_loss, brier, *squares) = independent_rows(rows), np.array(sums) / weight
    scalars = {
        **rows,
        **measured("accuracy", accuracy, share_error(accuracy, m)),
        **measured("log_loss", log_loss, mean_error(log_loss, squares[0], m)),
        **measured("brier", brier, mean_error(brier, squares[1], m)),
        "calibration_error": float(np.abs(came - claimed).sum() / weight),
    }
    with np.errstate(invalid="ignore"):
        return Reliability(scalars, claimed / count, came / count, count)
