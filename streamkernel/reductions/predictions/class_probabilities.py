"""Class probabilities and count rates: of generalised Gaussian processes, averaged over the latent f, and of log odds.

f has the mean m and the variance v (or covariance) of `LatentPosterior`. Each prediction is a deterministic function
of the row:

- two classes: ``p = E 1 / (1 + e^-f)``. A mixture of eight normal distribution functions, ``sum_i p_i Phi(s_i f)``,
  replaces the logistic function. Its expectation is ``sum_i p_i Phi(s_i m / sqrt(1 + s_i^2 v))`` (Monahan & Stefanski
  1992). The error is at most 2.2e-9 for every variance;
- more classes: the mean of softmax over 256 fixed points, mapped by the covariance of the row. The points are normal
  draws and their negatives, transformed to have covariance I. For 7 classes the largest error of a probability is
  4e-4 at latent standard deviations of 0.5, 1.5e-3 at 1 and 5e-3 at 2. MacKay's approximation by pairs of classes has
  an error of 6e-2 at 2;
- counts: ``E e^f = e^(m + v / 2)``, and ``var y = E e^f + (e^v - 1) (E e^f)^2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import expit, ndtr, softmax

from streamkernel.reductions.predictions.latent import LatentPosterior
from streamkernel.reductions.row_map import Predictions, ProbabilityMap, RowMap
from streamkernel.reductions.row_random import stream_generator
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float

# Monahan & Stefanski 1992, table of k = 8.
_WEIGHTS = np.array([
    0.003246343272134, 0.051517477033972, 0.195077912673858, 0.315569823632818,
    0.274149576158423, 0.131076880695470, 0.027912418727972, 0.001449567805354,
])  # fmt: skip
_SLOPES = np.array([
    1.365340806296348, 1.059523971016916, 0.830791313765644, 0.650732166639391,
    0.508135425366489, 0.396313345166341, 0.308904252267995, 0.238212616409306,
])  # fmt: skip

_POINTS = 256
_PANEL_VALUES = 1 << 17  # function values at points in memory at once: they stay in the cache
_PANEL_COVARIANCES = 1 << 21
_MOST_LOG_RATE = 600.0
_JITTER, _NOTHING = 1e-12, 1e-280  # share of the variances that is added to a singular covariance, and variance of 0


def logistic_normal(mean: Float, variance: Float) -> Float:
    """``E 1 / (1 + e^-f)`` for normal f, elementwise.

    The error is at most 2.2e-9. The result is never farther from 1/2 than the logistic function at the mean of f.
    """
    # The smaller of the two probabilities is computed, because 1 - p would lose its digits.
    size = np.abs(mean)[..., None] * _SLOPES
    less_likely = ndtr(-size / np.sqrt(1.0 + _SLOPES**2 * variance[..., None])) @ _WEIGHTS
    # An average over f is nearer to 1/2 than the value at the mean. Far from 0 the mixture falls faster than the
    # logistic function, so the value at the mean is the bound.
    less_likely = np.maximum(less_likely, expit(-np.abs(mean)))
    return np.asarray(np.where(mean < 0.0, less_likely, 1.0 - less_likely))


def averaged_probabilities(mean: Float, covariance: Float, contrasts: Float) -> Float:
    """Class probabilities (b, C), given the mean (b, c) and the covariance (b, r, r) in free coordinates of f."""
    if mean.shape[1] > 2:
        return _softmax_normal(mean, _roots(covariance), contrasts)
    if mean.shape[1] == 1:
        second = logistic_normal(mean[:, 0], covariance[:, 0, 0])
    else:
        # f_2 - f_1 = sqrt(2) t
        second = logistic_normal(mean[:, 1] - mean[:, 0], 2.0 * covariance[:, 0, 0])
    return np.stack([1.0 - second, second], axis=1)


@dataclass(frozen=True)
class ClassProbabilities(ProbabilityMap):
    """Class probabilities of a generalised Gaussian process.

    Parameters
    ----------
    latent : LatentPosterior of one function (Bernoulli) or of one function per class (softmax).
    """

    latent: LatentPosterior

    @property
    def classes(self) -> int:
        return max(2, len(self.latent.intercept))

    def probabilities(self, X: AnyArray) -> Float:
        found = np.empty((len(X), self.classes))
        panel = self._panel(len(X))
        for first in range(0, len(X), panel):
            moments = self.latent.moments(X[first : first + panel])
            found[first : first + panel] = averaged_probabilities(*moments, self.latent.contrasts)
        return found

    def _panel(self, rows: int) -> int:
        """Number of rows whose covariances are in memory at once."""
        return max(16, min(rows, _PANEL_COVARIANCES // self.latent.covariance.free**2))

    def scratch_bytes(self, rows: int) -> int:
        C, held = self.classes, self._panel(rows)
        return int(
            self.latent.scratch_bytes(held) + 8 * held * (C * C + 2 * C + 32) + 8 * rows * C + 24 * _PANEL_VALUES
        )

    def flops_per_row(self) -> float:
        C = self.classes
        points = float(_POINTS * C * (2 * C + 40)) if C > 2 else 400.0
        return self.latent.flops_per_row() + points


@dataclass(frozen=True)
class PoissonPredictions(RowMap):
    """Mean and standard deviation of counts.

    Parameters
    ----------
    latent : LatentPosterior of one function, the logarithm of the rate.
    std : write a column "std" too: the standard deviation of y, from the uncertainty of the rate and the Poisson noise.
    """

    latent: LatentPosterior
    std: bool = False

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        column = (None, np.dtype(np.float64))
        return {"prediction": column, "std": column} if self.std else {"prediction": column}

    def moments(self, X: AnyArray) -> tuple[Float, Float]:
        """Mean and variance of y, (b, 1) each."""
        mean, covariance = self.latent.moments(X)
        variance = covariance[:, :, 0]
        rate = mean_rate(mean, variance)
        with np.errstate(over="ignore"):
            return rate, rate + rate**2 * np.expm1(variance)

    def rate(self, X: AnyArray) -> Float:
        """``E y``, (b,)."""
        return self.moments(X)[0][:, 0]

    def values(self, X: AnyArray) -> Float:
        """``E y``, (b, 1)."""
        return self.moments(X)[0]

    def check_values(self, X: AnyArray) -> dict[str, Float]:
        """The values that are compared with the targets."""
        mean, variance = self.moments(X)
        return {"predicted": mean, "std": np.sqrt(variance)}

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        mean, variance = self.moments(block.X)
        values = {"prediction": mean[:, 0]}
        return values | {"std": np.sqrt(variance[:, 0])} if self.std else values

    def scratch_bytes(self, rows: int) -> int:
        return self.latent.scratch_bytes(rows) + 64 * rows

    def flops_per_row(self) -> float:
        return self.latent.flops_per_row() + 100.0


def mean_rate(mean: Float, variance: Float) -> Float:
    """``E e^f``, elementwise."""
    return np.asarray(np.exp(np.minimum(mean + 0.5 * variance, _MOST_LOG_RATE)))


def _roots(covariance: Float) -> Float:
    """Lower triangles L (b, r, r) with ``L L^T = covariance``, of which some may be singular.

    They are where the kernel is 0, such as the linear one at a row of zeros: nothing is uncertain there.
    """
    try:
        return np.asarray(np.linalg.cholesky(covariance), np.float64)
    except np.linalg.LinAlgError:
        pass
    # One by one: the root of a row must not depend on the rows beside it.
    return np.stack([_root(each) for each in covariance])


def _root(covariance: Float) -> Float:
    try:
        return np.asarray(np.linalg.cholesky(covariance), np.float64)
    except np.linalg.LinAlgError:
        size = max(float(np.trace(covariance)), _NOTHING)
        return np.asarray(np.linalg.cholesky(covariance + _JITTER * size * np.eye(len(covariance))), np.float64)


def _softmax_normal(mean: Float, root: Float, contrasts: Float) -> Float:
    """Mean of softmax over ``f = mean + Q root e``: mean (b, c), root (b, r, r), Q the contrasts, e the fixed points.

    Returns (b, c).
    """
    b, c = mean.shape
    points = np.ascontiguousarray(_normal_points(contrasts.shape[1]).T)
    probabilities = np.empty((b, c))
    panel = max(1, _PANEL_VALUES // (c * _POINTS))
    for first in range(0, b, panel):
        rows = slice(first, first + panel)
        # The points are contiguous along the last axis, over which the mean is taken.
        f = (contrasts @ root[rows]) @ points
        f += mean[rows, :, None]
        f -= f.max(axis=1, keepdims=True)
        np.exp(f, out=f)
        f /= f.sum(axis=1, keepdims=True)
        probabilities[rows] = f.mean(axis=2)
    return probabilities


@lru_cache(maxsize=8)
def _normal_points(dimensions: int) -> Float:
    """(256, r) points whose mean is 0 and whose covariance is I."""
    half = stream_generator(0, (_POINTS,)).standard_normal((_POINTS // 2, dimensions))
    points = np.concatenate([half, -half])
    # The covariance of too few points per dimension is far from I, and to correct it would distort the points.
    if dimensions <= _POINTS // 8:
        points = np.linalg.solve(np.linalg.cholesky(points.T @ points / _POINTS), points.T).T
    return np.ascontiguousarray(points)


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


@dataclass(frozen=True)
class OneAgainstRest(ProbabilityMap):
    """Probabilities of more than two classes, from one process per class against the rest.

    ``p_c = q_c / sum_d q_d`` with ``q_c = E 1 / (1 + e^-f_c)``, f_c normal with the mean and variance of its latent.

    Parameters
    ----------
    latents : LatentPosterior of each class, of one function.
    """

    latents: tuple[LatentPosterior, ...]

    @property
    def classes(self) -> int:
        return len(self.latents)

    def probabilities(self, X: AnyArray) -> Float:
        found = np.empty((len(X), self.classes))
        for c, latent in enumerate(self.latents):
            mean, covariance = latent.moments(X)
            found[:, c] = logistic_normal(mean[:, 0], covariance[:, 0, 0])
        # If all probabilities of a row underflow to 0, all classes become equally likely.
        found += np.finfo(np.float64).tiny
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def scratch_bytes(self, rows: int) -> int:
        return self.latents[0].scratch_bytes(rows) + 8 * rows * (2 * self.classes + 32)

    def flops_per_row(self) -> float:
        return sum(latent.flops_per_row() + 400.0 for latent in self.latents)
