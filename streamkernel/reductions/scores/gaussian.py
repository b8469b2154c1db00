"""Scores of normal predictions of targets: errors of the mean, log density, and coverage of the intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from streamkernel.reductions.contract import State
from streamkernel.reductions.scores.errors import (
    TINY,
    TRANSFORM_BINS,
    PredictionScores,
    Predictive,
    bins_of,
    combine_errors,
    counted,
    error_bytes,
    error_scores,
    error_sums,
    rows_of,
    tally,
    total,
    width_of,
)
from streamkernel.reductions.scores.standard_errors import independent_rows, mean_error, measured, share_error
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Fields, Float

LEVELS = np.append(np.arange(1, 20) / 20, 0.99)
_HALF_WIDTHS = ndtri(0.5 + 0.5 * LEVELS)  # of the central intervals, in standard deviations; 1.959964 for 0.95
_AT_95 = 18
_LEAST_LOG_DENSITY = -1e290  # keeps sums over all rows finite, because JSON has no infinity


class GaussianPredictive(Predictive, Protocol):
    """A normal distribution for every target, noise included."""

    def moments(self, X: AnyArray) -> tuple[Float, Float]:
        """Mean and variance of y, (b, d) each."""
        ...


@dataclass(frozen=True)
class GaussianCalibration:
    """Scores of normal predictions against the observed targets.

    Attributes
    ----------
    scalars : those of `rows_of`; ``rmse``, ``mae``, ``r2``, ``nlpd``, ``coverage95``, and of each the standard error,
        such as ``nlpd_se``; of several targets as in `error_scores`, ``nlpd`` and ``coverage95`` averaged over them.
    levels : (k,) nominal levels of the central intervals.
    coverage : (d, k) share of the targets inside them.
    transform : (d, 20) weight of the probability integral transforms ``Phi((y - m) / sqrt v)`` in each twentieth of [0,
        1]; these are about equal if the distributions are right.
    """

    scalars: Fields
    levels: Float
    coverage: Float
    transform: Float


@dataclass(frozen=True)
class GaussianScores(PredictionScores[GaussianCalibration]):
    """Scores of the mean m and of the distribution N(m, v).

    ``nlpd = mean(log(2 pi v) / 2 + (y - m)^2 / (2 v))`` over rows and targets; ``coverage95`` is the share of targets
    in ``m +- 1.959964 sqrt v``. A variance below the smallest normal number counts as that number, a log density below
    -1e290 as -1e290.
    """

    predictions: GaussianPredictive
    scale: Sequence[float] = ()

    def map_block(self, block: RowBlock) -> State:
        block = counted(block)
        assert block.Y is not None
        return _gaussian_sums(block.Y, *self.predictions.moments(block.X), block.weights)

    def combine(self, left: State, right: State) -> State:
        sums = {name: left[name] + right[name] for name in ("log_density", "density_square", "inside", "transform")}
        return combine_errors(left, right) | sums

    def finalize(self, state: State) -> GaussianCalibration:
        return _calibration(state, self.scale)

    def state_bytes(self) -> int:
        d = width_of(self.predictions)
        return error_bytes(d) + 8 * d * (3 + len(LEVELS) + TRANSFORM_BINS)

    def scratch_bytes(self, rows: int) -> int:
        return super().scratch_bytes(rows) + 64 * rows * width_of(self.predictions)


def score_gaussian(Y: Float, mean: Float, variance: Float, weights: Float | None = None) -> GaussianCalibration:
    """Same scores as `GaussianScores`, for targets and predictions in memory, (b, d) each."""
    return _calibration(_gaussian_sums(Y, mean, variance, weights))


def _gaussian_sums(Y: Float, mean: Float, variance: Float, weights: Float | None = None) -> State:
    variance = np.maximum(variance, TINY)
    z = (Y - mean) / np.sqrt(variance)
    with np.errstate(over="ignore"):
        log_density = np.maximum(-0.5 * (np.log(2.0 * np.pi * variance) + z * z), _LEAST_LOG_DENSITY)
        density_square = total(log_density**2, weights)
    return error_sums(Y, mean, weights) | {
        "log_density": total(log_density, weights),
        "density_square": density_square,
        "inside": tally(np.searchsorted(_HALF_WIDTHS, np.abs(z)), len(LEVELS) + 1, weights),
        "transform": tally(bins_of(ndtr(z), TRANSFORM_BINS), TRANSFORM_BINS, weights),
    }


def _calibration(state: State, scale: Sequence[float] = ()) -> GaussianCalibration:
    errors = error_scores(state, scale)
    weight, rows = rows_of(state, errors["rows"])
    m = independent_rows(rows)
    coverage = state["inside"].cumsum(axis=1)[:, :-1] / weight
    nlpd, inside = -state["log_density"] / weight, coverage[:, _AT_95]
    scalars = {
        **errors,
        **measured("nlpd", nlpd, mean_error(nlpd, state["density_square"] / weight, m)),
        **measured("coverage95", inside, share_error(inside, m)),
    }
    return GaussianCalibration(scalars, LEVELS, coverage, state["transform"])
