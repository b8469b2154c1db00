"""Scores of Poisson predictions of counts: log density, deviance, and the share of the deviance that is explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import gammaln, pdtr, xlog1py, xlogy

from streamkernel.errors import DataError
from streamkernel.reductions.contract import State
from streamkernel.reductions.scores.errors import (
    TINY,
    TRANSFORM_BINS,
    PredictionScores,
    Predictive,
    combine_errors,
    counted,
    error_bytes,
    error_scores,
    error_sums,
    rows_of,
    share_explained,
    total,
    width_of,
)
from streamkernel.reductions.scores.standard_errors import independent_rows, mean_error, measured
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Fields, Float


class CountPredictive(Predictive, Protocol):
    """A mean rate for every target."""

    def values(self, X: AnyArray) -> Float:
        """(b, d), positive."""
        ...


@dataclass(frozen=True)
class CountCalibration:
    """Scores of Poisson predictions against the observed counts.

    Attributes
    ----------
    scalars : those of `rows_of`; ``rmse``, ``mae``, ``r2``, ``nlpd``, ``deviance``, each with its standard error, such
        as ``nlpd_se``; ``d2``; of several targets as in `error_scores`, all others averaged over them.
    transform : (d, 20) histogram of the probability integral transform. The transform of a count y is the interval from
        P(y - 1) to P(y), and its row is spread evenly over it (Czado, Gneiting & Held 2009, eq. (2)).
    """

    scalars: Fields
    transform: Float


@dataclass(frozen=True)
class CountScores(PredictionScores[CountCalibration]):
    """Errors of predicted rates mu, and of the distributions Poisson(mu).

    The predictive distribution is that of the mean rate, without the uncertainty of the rate:
    ``nlpd = mean(mu - y log mu + log y!)``. ``deviance = 2 mean(y log(y / mu) - y + mu)``, as scikit-learn's
    ``mean_poisson_deviance``; ``d2`` is the explained share of the deviance of the mean count. Logarithms replace a
    rate below the smallest normal number by that number.

    Raises
    ------
    DataError
        A target is negative.
    """

    predictions: CountPredictive
    scale: Sequence[float] = ()

    def map_block(self, block: RowBlock) -> State:
        assert block.Y is not None
        wrong = ~(block.Y >= 0.0).all(axis=1)
        if block.weights is not None:
            wrong &= block.weights > 0.0
        if wrong.any():
            row = block.start + int(wrong.argmax())
            raise DataError(f"row {row} has a negative target, and a Poisson model is of counts; leave such rows out")
        block = counted(block)
        assert block.Y is not None
        return _count_sums(block.Y, self.predictions.values(block.X), block.weights)

    def combine(self, left: State, right: State) -> State:
        sums = {name: left[name] + right[name] for name in ("deviance", "log_density", "squares", "transform")}
        errors = combine_errors(left, right)
        # sum D(y, mean) = sum_a D(y, mean_a) + rows_a D(mean_a, mean), as for every Bregman divergence: all terms are
        # positive, so no digits cancel.
        least = sum(
            part["least"] + part.get("y_weight", part["y_count"]) * _unit_deviance(part["y_mean"], errors["y_mean"])
            for part in (left, right)
        )
        return errors | sums | {"least": np.asarray(least)}

    def finalize(self, state: State) -> CountCalibration:
        return _count_calibration(state, self.scale)

    def state_bytes(self) -> int:
        d = width_of(self.predictions)
        return error_bytes(d) + 8 * d * (5 + TRANSFORM_BINS)

    def scratch_bytes(self, rows: int) -> int:
        return super().scratch_bytes(rows) + 8 * rows * width_of(self.predictions) * (8 + 2 * TRANSFORM_BINS)


def score_counts(Y: Float, rate: Float, weights: Float | None = None) -> CountCalibration:
    """Same scores as `CountScores`, for counts and rates in memory, (b, d) each."""
    return _count_calibration(_count_sums(Y, rate, weights))


def _count_sums(Y: Float, rate: Float, weights: Float | None = None) -> State:
    errors = error_sums(Y, rate, weights)
    deviance = _unit_deviance(Y, rate)
    log_density = xlogy(Y, np.maximum(rate, TINY)) - rate - gammaln(Y + 1.0)
    with np.errstate(over="ignore"):
        squares = np.stack([total(deviance**2, weights), total(log_density**2, weights)])
    return errors | {
        "deviance": total(deviance, weights),
        "least": total(_unit_deviance(Y, errors["y_mean"]), weights),
        "log_density": total(log_density, weights),
        "squares": squares,
        "transform": total(_spread_transforms(Y, rate), weights),
    }


def _unit_deviance(y: Float, mu: Float) -> Float:
    """``2 (y log(y / mu) - y + mu)``, elementwise; mu may be 0 where y is 0."""
    difference, mu = y - mu, np.maximum(mu, TINY)
    near = np.abs(difference) < 0.5 * mu
    # For large counts near their rates, log(y / mu) cancels to rounding; log1p of the difference does not.
    logarithm = np.where(near, xlog1py(y, np.where(near, difference / mu, 0.0)), xlogy(y, y) - xlogy(y, mu))
    return np.asarray(2.0 * (logarithm - difference))


def _spread_transforms(Y: Float, rate: Float) -> Float:
    """(b, d, 20): share of each interval from P(y - 1) to P(y) that lies in each twentieth of [0, 1]."""
    below, upto = np.where(Y >= 1.0, pdtr(np.maximum(Y - 1.0, 0.0), rate), 0.0), pdtr(Y, rate)
    edges = np.arange(1, TRANSFORM_BINS) / TRANSFORM_BINS
    within = (edges - below[..., None]) / np.maximum(upto - below, TINY)[..., None]
    ends = np.zeros((*Y.shape, 1)), np.ones((*Y.shape, 1))
    return np.diff(np.concatenate([ends[0], np.clip(within, 0.0, 1.0), ends[1]], axis=-1))


def _count_calibration(state: State, scale: Sequence[float] = ()) -> CountCalibration:
    errors = error_scores(state, scale)
    weight, rows = rows_of(state, errors["rows"])
    m = independent_rows(rows)
    nlpd, deviance, squares = -state["log_density"] / weight, state["deviance"] / weight, state["squares"] / weight
    scalars = {
        **errors,
        **measured("nlpd", nlpd, mean_error(nlpd, squares[1], m)),
        **measured("deviance", deviance, mean_error(deviance, squares[0], m)),
        "d2": share_explained(state["deviance"], state["least"], rows["rows"]),
    }
    return CountCalibration(scalars, state["transform"])
