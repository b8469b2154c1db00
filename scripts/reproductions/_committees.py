"""The pure part of `bcm`: a problem, what predicts it, and whether one prediction is worse than another beyond noise.

Rows are in units of the kernel's lengthscales, so that the kernel is one of lengthscale 1; targets have mean 0 and
deviation 1 over the rows of the fit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel import open_table
from streamkernel.basis import Basis
from streamkernel.committee import cell_centres, query_set
from streamkernel.committee.partition import CELLS
from streamkernel.engine import Session
from streamkernel.kernels import Gaussian, log_lengthscales
from streamkernel.linalg import solve_lower
from streamkernel.reductions import Sample
from streamkernel.reductions.sums import BlockNoise, GaussianEquations, RowNoise
from streamkernel.solvers import ExactGP, GaussianSystem
from streamkernel.tuning.gaussian import tune

Float = NDArray[np.float64]
KERNEL = Gaussian(1.0)
NOISE = 2.0  # standard errors that a difference may have
SAME = 1e-6  # and what is rounding


@dataclass(frozen=True)
class Problem:
    """Rows to fit and to test, and the variances of f and of y given f."""

    X: Float
    y: Float
    X_test: Float
    y_test: Float
    signal: float
    noise: float

    def with_tests(self, rows: slice) -> Problem:
        return Problem(self.X, self.y, self.X_test[rows], self.y_test[rows], self.signal, self.noise)


@dataclass(frozen=True)
class Prediction:
    """Mean and variance of y at the rows to test; seconds of the sweep, or of the factorisation."""

    mean: Float
    variance: Float
    seconds: float


@dataclass(frozen=True)
class Scores:
    """Of one prediction: square error and negative log density of each row, and the share inside 95 % intervals."""

    squares: Float
    densities: Float
    coverage: float

    @classmethod
    def of(cls, prediction: Prediction, y: Float) -> Scores:
        squares, variance = (y - prediction.mean) ** 2, prediction.variance
        densities = 0.5 * (np.log(2.0 * np.pi * variance) + squares / variance)
        return cls(squares, densities, float(np.mean(squares <= 1.959964**2 * variance)))

    @property
    def rmse(self) -> float:
        return float(np.sqrt(self.squares.mean()))

    @property
    def nlpd(self) -> float:
        return float(self.densities.mean())

    @property
    def errors(self) -> tuple[float, float]:
        """Standard errors over the rows: of RMSE as a share of it, and of NLPD."""
        root = np.sqrt(len(self.squares))
        share = self.squares.std(ddof=1) / root / (2.0 * self.rmse**2)
        return float(share), float(self.densities.std(ddof=1) / root)


@dataclass(frozen=True)
class Loss:
    """What one prediction loses against another on the same rows, and the standard error of that."""

    mean: float
    error: float

    @property
    def negative(self) -> Loss:
        """What the other loses against this one."""
        return Loss(-self.mean, self.error)

    @property
    def beyond_noise(self) -> bool:
        return self.mean > max(NOISE * self.error, SAME)


def loss(rows: Float, reference: Float) -> Loss:
    """Of the means, row by row: what the rows have in common is no noise."""
    difference = rows - reference
    return Loss(float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference))))


def rmse_loss(scores: Scores, reference: Scores) -> Loss:
    """As a share of the reference's root mean square error, by its slope."""
    found, unit = loss(scores.squares, reference.squares), 2.0 * reference.rmse**2
    return Loss(scores.rmse / reference.rmse - 1.0, found.error / unit)


def tuned(X: Float, y: Float, X_test: Float, y_test: Float, *, rows: int, seed: int) -> Problem:
    """Standardised, with lengthscales and variances by the FITC evidence of the first `rows` rows of the fit."""
    deviation = X.std(axis=0)
    heard = deviation > 0.0
    X, X_test = ((part[:, heard] - X[:, heard].mean(axis=0)) / deviation[heard] for part in (X, X_test))
    mean, scale = y.mean(), y.std()
    y, y_test = (y - mean) / scale, (y_test - mean) / scale
    count = min(rows, len(X))
    sample = Sample(np.arange(count), X[:count], y[:count, None], np.ones(count))
    start = Gaussian(float(np.sqrt(X.shape[1])))
    session = Session()
    found = tune(sample, start, scale=np.ones(1), centre=np.zeros(1), ard=True, seed=seed, run=session.local)
    lengths = np.exp(log_lengthscales(found.kernel))
    return Problem(X / lengths, y, X_test / lengths, y_test, found.signal, found.noise)


def exact(problem: Problem) -> tuple[Prediction, float]:
    """The exact Gaussian process, and ``p_eff = tr s K (s K + noise I)^-1 = m - noise tr (s K + noise I)^-1``."""
    began = time.perf_counter()
    process = ExactGP(problem.X, problem.y, KERNEL, signal=problem.signal, noise=problem.noise)
    seconds = time.perf_counter() - began
    posterior = process.posterior(problem.X_test)
    root = solve_lower(process.L, np.eye(len(problem.X)))
    degrees = len(problem.X) - problem.noise * float(np.vdot(root, root))
    return Prediction(posterior.mean[:, 0], posterior.variance + problem.noise, seconds), degrees


def sparse(problem: Problem, basis: Basis, row_noise: RowNoise) -> Prediction:
    """One sweep: the committee for `BlockNoise`, DTC for `ConstantNoise`."""
    table = open_table(problem.X, problem.y[:, None])
    equations = GaussianEquations(basis, np.zeros(1), row_noise)
    began = time.perf_counter()
    sums = Session().sweep(equations, table, "final sweep")
    solution = GaussianSystem(basis, sums, row_noise).solve(problem.signal, problem.noise)
    seconds = time.perf_counter() - began
    mean, variance = solution.predictions(basis, std=True).moments(problem.X_test)
    return Prediction(mean[:, 0], variance[:, 0], seconds)


def members(problem: Problem, size: int, partition: str, seed: int = 0) -> BlockNoise:
    """Members of `size` rows: as they come, or by as many cells as there are members within one lot of rows."""
    if partition == "rows":
        return BlockNoise(problem.signal, problem.noise, size)
    count = max(1, min(CELLS, len(problem.X) // size))
    table = open_table(problem.X, problem.y[:, None])
    centres = cell_centres(table, KERNEL, count, session=Session(), seed=seed)
    return BlockNoise(problem.signal, problem.noise, size, centres)


def asked_together(problem: Problem, n: int, row_noise: RowNoise) -> Prediction:
    """The rows to test are the query points themselves, n at a time (Tresp 2001, eqs. (8), (9)).

    The last lot is filled up with rows of the lot before.
    """
    empty = Basis.empty(KERNEL, problem.X.shape[1], problem.X.dtype)
    count = len(problem.X_test)
    mean, variance, seconds = np.empty(count), np.empty(count), 0.0
    for first in range(0, count, n):
        lot = slice(max(0, min(first, count - n)), min(first + n, count))
        found = sparse(problem.with_tests(lot), query_set(empty, problem.X_test[lot])[0], row_noise)
        mean[lot], variance[lot], seconds = found.mean, found.variance, seconds + found.seconds
    return Prediction(mean, variance, seconds)
