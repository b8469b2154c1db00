"""How much of the variance is believed: by what makes targets likeliest that the fit has not seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian
from streamkernel.reductions import Sample
from streamkernel.reductions.likelihoods import likelihood_of
from streamkernel.reductions.predictions import ClassProbabilities, FullCovariance, LatentPosterior
from streamkernel.reductions.sums import Features
from streamkernel.solvers import LaplaceApproximation, calibrated, solve_newton
from streamkernel.solvers.generalised.calibration import SHARES, _left_out
from streamkernel.tuning.sample_evidence import sweep_rows

LIKELIHOODS = ("bernoulli", "poisson", "softmax")


def rows(name: str, m: int = 600) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    X = generator.uniform(-2, 2, (m, 2))
    f = 2 * np.sin(2 * X[:, 0])
    if name == "poisson":
        return X, generator.poisson(np.exp(f / 2)).astype(float)[:, None]
    classes = (f + generator.logistic(size=m) > 0).astype(int)
    if name == "softmax":
        classes = np.digitize(f + generator.logistic(size=m), [-1, 1])
    return X, np.eye(classes.max() + 1)[classes]


def sample_of(X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None) -> Sample:
    return Sample(np.arange(len(X)), X, Y, np.ones(len(X)) if weights is None else weights)


def fitted(
    name: str, X: np.ndarray, Y: np.ndarray, signal: float, lengthscale: float = 0.5, weights: np.ndarray | None = None
) -> LatentPosterior:
    basis, _ = Basis.empty(Gaussian(lengthscale), X.shape[1], X.dtype).append(X[:25], np.arange(25))
    sweep = sweep_rows(X, Y, weights)
    fit = solve_newton(
        lambda work, _: sweep(work),
        Features.of_basis(basis),
        likelihood_of(name, Y.shape[1]),
        signal_variance=signal,
        tolerance=1e-10,
    )
    return LaplaceApproximation.of(fit).posterior(basis)


def log_loss(found: LatentPosterior, X: np.ndarray, Y: np.ndarray) -> float:
    return float(-np.log((ClassProbabilities(found).probabilities(X) * Y).sum(1)).mean())


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_what_the_basis_leaves_open_is_no_uncertainty_of_rows_like_these(name: str) -> None:
    X, Y = rows(name)
    found = fitted(name, X, Y, 50.0)
    chosen = calibrated(found, likelihood_of(name, Y.shape[1]), sample_of(X, Y))
    assert {chosen.residual_share, chosen.covariance_share} <= set(SHARES)
    assert chosen.residual_share < 0.1
    assert found.residual_share == found.covariance_share == 1.0
    # A rate is not of a class: its covariance is as it was.
    assert name != "poisson" or chosen.covariance_share == 1.0


def test_classes_that_are_told_apart_are_certain_on_other_rows() -> None:
    """Four blobs: the normal distribution around the minimum is as wide as the prior where a class is certain."""
    generator = np.random.default_rng(1)
    codes = generator.integers(0, 4, 2000)
    X = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])[codes] + generator.normal(0.0, 0.35, (2000, 2))
    Y = np.eye(4)[codes]
    found = fitted("softmax", X[:600], Y[:600], 600.0, lengthscale=1.0)
    chosen = calibrated(found, likelihood_of("softmax", 4), sample_of(X[:600], Y[:600]))
    kept = replace(found, residual_share=chosen.residual_share)
    losses = [log_loss(each, X[600:], Y[600:]) for each in (chosen, kept)]
    assert chosen.covariance_share < 0.1
    assert losses[0] < 0.5 * losses[1]
    # No other share is much better on rows that the fit has not seen.
    best = min(log_loss(replace(chosen, covariance_share=share), X[600:], Y[600:]) for share in SHARES)
    assert losses[0] < best + 0.005


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_row_is_left_out_as_a_fit_without_it_would(name: str, weighted: bool) -> None:
    X, Y = rows(name, 150)
    weights = np.random.default_rng(5).integers(1, 4, len(X)).astype(float) if weighted else np.ones(len(X))
    likelihood = likelihood_of(name, Y.shape[1])
    found = fitted(name, X, Y, 2.0, weights=weights)
    some = np.arange(30, 60)
    y = likelihood.targets(Y[some], 0)
    mean, covariance, left = _left_out(found, likelihood, X[some], y, weights[some])
    with_it = found.parts(X[some])
    off, moved = [], []
    for k, row in enumerate(some):
        others = np.delete(np.arange(len(X)), row)
        f, S, open_ = fitted(name, X[others], Y[others], 2.0, weights=weights[others]).parts(X[[row]])
        off.append([np.abs(mean[k] - f[0]).max(), np.abs(covariance[k] - S[0]).max()])
        moved.append([np.abs(with_it[0][k] - f[0]).max(), np.abs(with_it[1][k] - S[0]).max()])
        assert left[k] == pytest.approx(open_[0])
    # To first order: most of what leaving it out does is told.
    assert (np.sum(off, axis=0) < [0.35, 0.7] * np.sum(moved, axis=0)).all()


def test_a_true_variance_is_believed() -> None:
    """Functions drawn from the prior outside the span of the basis, whose mean there is 0."""
    generator = np.random.default_rng(0)
    X = generator.uniform(-40, 40, (1500, 2))
    basis, _ = Basis.empty(Gaussian(1.0), 2, X.dtype).append(np.full((1, 2), 1000.0), np.array([0]))
    f = generator.normal(0.0, 3.0, len(X))
    # Targets of an f that the basis knows nothing of: 1 / 2 whatever the mean says.
    Y = np.eye(2)[(f + generator.logistic(size=len(X)) > 0).astype(int)]
    one = np.ones((1, 1))
    told = LatentPosterior(basis, np.zeros((1, 1)), np.array([2.5]), one, 9.0, FullCovariance(np.zeros((1, 1, 1))))
    assert calibrated(told, likelihood_of("bernoulli", 2), sample_of(X, Y)).residual_share == 1.0


def test_a_true_covariance_is_believed() -> None:
    """Few rows of a function from the prior, with labels that are often wrong: the rest of it is not known."""
    generator = np.random.default_rng(2)
    X = generator.uniform(-12, 12, (60, 2))
    Y = np.eye(2)[generator.integers(0, 2, 60)]
    found = fitted("bernoulli", X, Y, 9.0, lengthscale=1.0)
    assert calibrated(found, likelihood_of("bernoulli", 2), sample_of(X, Y)).covariance_share == 1.0


def test_the_mean_is_as_it_was() -> None:
    X, Y = rows("bernoulli")
    found = fitted("bernoulli", X, Y, 50.0)
    chosen = calibrated(found, likelihood_of("bernoulli", 2), sample_of(X, Y))
    np.testing.assert_array_equal(chosen.moments(X)[0], found.moments(X)[0])
    assert (chosen.moments(X)[1] <= found.moments(X)[1]).all()


def test_both_shares_scale_their_terms() -> None:
    X, Y = rows("softmax")
    found = fitted("softmax", X, Y, 5.0)
    _, covariance, left = found.parts(X)
    shared = replace(found, residual_share=0.25, covariance_share=0.125).moments(X)[1]
    np.testing.assert_allclose(shared, 0.125 * covariance + 0.25 * left[:, None, None] * np.eye(2), rtol=1e-9)


def test_rows_of_no_weight_say_nothing() -> None:
    X, Y = rows("bernoulli")
    found = fitted("bernoulli", X, Y, 50.0)
    likelihood = likelihood_of("bernoulli", 2)
    weights = (np.arange(len(X)) < 300).astype(float)
    wrong = np.where(weights[:, None] > 0.0, Y, 1.0 - Y)
    assert calibrated(found, likelihood, sample_of(X, wrong, weights)) == calibrated(
        found, likelihood, sample_of(X[:300], Y[:300])
    )


def test_without_rows_nothing_changes() -> None:
    X, Y = rows("bernoulli")
    found = fitted("bernoulli", X, Y, 5.0)
    assert calibrated(found, likelihood_of("bernoulli", 2), sample_of(X[:0], Y[:0])) is found
    assert calibrated(found, likelihood_of("bernoulli", 2), sample_of(X, Y, np.zeros(len(X)))) is found
