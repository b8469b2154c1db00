"""Sums of Newton and gradient steps, against plain NumPy over all rows."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from problems import basis_of, blocks

from streamkernel.errors import DataError
from streamkernel.kernels import Gaussian
from streamkernel.reductions import Reduction
from streamkernel.reductions.likelihoods import (
    Bernoulli,
    GradientStep,
    Latent,
    Likelihood,
    NewtonStart,
    NewtonStep,
    Poisson,
    Softmax,
)
from streamkernel.reductions.sums import Features

STEPS = (1.0, 0.5, 2.0, 0.0)
EVERY: dict[str, Likelihood] = {"bernoulli": Bernoulli(), "poisson": Poisson(), "softmax": Softmax(3)}


def swept(reduction: Reduction[Any], X: Any, Y: Any, weights: Any = None, chunk: int = 64) -> Any:
    lengths = [min(chunk, len(X) - start) for start in range(0, len(X), chunk)]
    parts = list(blocks(X, Y, lengths, weights))
    state = reduction.map_block(parts[0])
    for block in parts[1:]:
        state = reduction.combine(state, reduction.map_block(block))
    return reduction.finalize(state)


class Case:
    """300 rows, 9 functions, a step from one choice of coefficients to another."""

    def __init__(self, name: str, weighted: bool = False, dtype: Any = np.float64) -> None:
        rng = np.random.default_rng(3)
        self.name, self.likelihood = name, EVERY[name]
        c = self.likelihood.width
        self.X = rng.standard_normal((300, 4)).astype(dtype)
        self.codes = rng.integers(0, {"bernoulli": 2, "poisson": 6, "softmax": 3}[name], 300)
        self.Y = naive.indicators(name, self.codes, c)
        self.w = rng.uniform(0.1, 3.0, 300) if weighted else np.ones(300)
        self.weights = self.w if weighted else None
        self.basis = basis_of(self.X, range(0, 300, 34), Gaussian(2.0))
        self.features = Features.of_basis(self.basis)
        self.start, self.end = (Latent(rng.standard_normal((9, c)), rng.standard_normal(c)) for _ in range(2))
        K = naive.gaussian(self.X, self.X, 2.0)
        self.G = np.linalg.solve(np.linalg.cholesky(K[::34, ::34]), K[::34]).T
        self.bordered = np.hstack([self.G, np.ones((300, 1))])

    def functions(self, step: float) -> Any:
        A, a = ((1 - step) * s + step * e for s, e in ((self.start.A, self.end.A), (self.start.a, self.end.a)))
        return self.G @ A + a

    def loss(self, f: Any) -> float:
        each = [naive.negative_log_likelihood(self.name, self.codes[i : i + 1], f[i : i + 1]) for i in range(len(f))]
        return float(self.w @ np.array(each))

    @property
    def gradient(self) -> Any:
        mean, _ = naive.response_moments(self.name, self.functions(1.0))
        return self.bordered.T @ (self.w[:, None] * (mean - self.Y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_newton_step(name: str, weighted: bool, dtype: Any) -> None:
    case = Case(name, weighted, dtype)
    sums = swept(NewtonStep(case.features, case.likelihood, case.start, case.end, STEPS), case.X, case.Y, case.weights)
    np.testing.assert_allclose(sums.losses, [case.loss(case.functions(step)) for step in STEPS], rtol=1e-10)
    np.testing.assert_allclose(sums.gradient, case.gradient, rtol=1e-9, atol=1e-9)
    # The whole Hessian: sum_i w_i A''(f_i) kron g_i g_i^T.
    curvature = case.w[:, None, None] * naive.response_moments(name, case.functions(1.0))[1]
    expected = np.einsum("icd,ij,ik->cjdk", curvature, case.bordered, case.bordered)
    pairs = case.likelihood.pairs
    found = np.einsum("kc,kd,kij->cidj", pairs, pairs, sums.curvature)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-7)
    np.testing.assert_array_equal(sums.curvature, sums.curvature.transpose(0, 2, 1))
    assert sums.curvature.dtype == np.float64


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_gradient_step_is_the_newton_step_without_its_hessian(name: str, weighted: bool) -> None:
    case = Case(name, weighted)
    arguments = case.features, case.likelihood, case.start, case.end, STEPS
    full = swept(NewtonStep(*arguments), case.X, case.Y, case.weights)
    cheap = swept(GradientStep.of(*arguments), case.X, case.Y, case.weights)
    np.testing.assert_allclose(cheap.losses, full.losses, rtol=1e-12)
    np.testing.assert_allclose(cheap.gradient, full.gradient, rtol=1e-8, atol=1e-8)
    curvature = naive.response_moments(name, case.functions(1.0))[1]
    expected = np.average(curvature, axis=0, weights=case.w)
    np.testing.assert_allclose(cheap.mean_curvature, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", EVERY)
def test_gradient_by_central_differences_of_the_losses(name: str) -> None:
    case, h = Case(name), 1e-6
    for row, column in ((0, 0), (8, case.likelihood.width - 1), (9, 0)):
        B = np.concatenate([case.end.A, case.end.a[None]])
        B[row, column] += 1.0
        moved = NewtonStep(case.features, case.likelihood, case.end, Latent(B[:-1], B[-1]), (h, -h))
        above, below = swept(moved, case.X, case.Y).losses
        assert (above - below) / (2 * h) == pytest.approx(case.gradient[row, column], rel=1e-6, abs=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_the_first_sweep_knows_every_constant(name: str, weighted: bool) -> None:
    case = Case(name, weighted)
    first = swept(NewtonStart(case.features, case.likelihood), case.X, case.Y, case.weights)
    a = np.linspace(-0.5, 0.7, case.likelihood.width)
    constant = Latent(np.zeros((9, len(a))), a)
    sums = swept(NewtonStep(case.features, case.likelihood, constant, constant), case.X, case.Y, case.weights)
    at = first.at(case.likelihood, a)
    np.testing.assert_allclose(at.losses, sums.losses, rtol=1e-11)
    np.testing.assert_allclose(at.gradient, sums.gradient, rtol=1e-9, atol=1e-9)
    cautious = Latent(constant.A, case.likelihood.cautious(a))
    sums = swept(NewtonStep(case.features, case.likelihood, cautious, cautious), case.X, case.Y, case.weights)
    np.testing.assert_allclose(at.curvature, sums.curvature, rtol=1e-9, atol=1e-9)
    assert (first.count, first.weight) == (300, pytest.approx(case.w.sum()))
    residual = case.w @ (1.0 - (case.G**2).sum(axis=1))
    assert first.residual_trace == pytest.approx(residual, rel=1e-9)


def test_features_that_are_given() -> None:
    case = Case("bernoulli")
    given = Features(None, 9)
    found = swept(NewtonStep(given, case.likelihood, case.start, case.end), case.G, case.Y)
    expected = swept(NewtonStep(case.features, case.likelihood, case.start, case.end), case.X, case.Y)
    np.testing.assert_allclose(found.curvature, expected.curvature, rtol=1e-9, atol=1e-9)
    assert swept(NewtonStart(given, case.likelihood), case.G, case.Y).residual_trace == 0.0


@pytest.mark.parametrize("step", [NewtonStep, GradientStep])
def test_bad_targets_are_named_by_their_row(step: Any) -> None:
    case = Case("poisson")
    case.Y[201] = -2.0
    for reduction in (NewtonStart(case.features, Poisson()), step(case.features, Poisson(), case.start, case.end)):
        with pytest.raises(DataError, match="y holds -2 in row 201"):
            swept(reduction, case.X, case.Y)


def test_a_refused_step_overflows_in_silence() -> None:
    """The full step of a Poisson fit may lead anywhere: its sums are thrown away, but must be had."""
    case = Case("poisson")
    far = Latent(np.full((9, 1), 1e4), np.array([1e4]))
    sums = swept(NewtonStep(case.features, Poisson(), case.start, far, (1.0, 0.0)), case.X, case.Y)
    assert sums.losses[0] == np.inf
    assert np.isfinite(sums.losses[1])
    assert np.isfinite(sums.curvature).all()
    assert np.isfinite(sums.gradient).all()
