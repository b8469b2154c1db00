"""How much of the open variance is believed: by what makes targets likeliest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian
from streamkernel.reductions import ClassProbabilities, Features, FullCovariance, LatentPosterior, likelihood_of
from streamkernel.solvers import LaplaceApproximation, calibrated, solve_newton
from streamkernel.solvers.calibration import SHARES
from streamkernel.solvers.sample_evidence import sweep_rows

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


def posterior(name: str, signal: float) -> tuple[LatentPosterior, np.ndarray, np.ndarray]:
    X, Y = rows(name)
    basis, _ = Basis.empty(Gaussian(0.5), 2, X.dtype).append(X[:25], np.arange(25))
    sweep = sweep_rows(X, Y)
    fit = solve_newton(
        lambda work, _: sweep(work), Features.of_basis(basis), likelihood_of(name, Y.shape[1]), signal_variance=signal
    )
    return LaplaceApproximation.of(fit).posterior(basis), X, Y


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_share_makes_targets_likeliest(name: str) -> None:
    found, X, Y = posterior(name, 50.0)
    chosen = calibrated(found, likelihood_of(name, Y.shape[1]), X, Y)
    assert chosen.residual_share in SHARES
    # A coarse basis of large functions: what it leaves open is no uncertainty of rows like these.
    assert chosen.residual_share < 0.1
    assert found.residual_share == 1.0
    if name != "poisson":
        maps = {share: ClassProbabilities(replace(found, residual_share=share)) for share in SHARES}
        losses = {share: -np.log((work.probabilities(X) * Y).sum(1)).mean() for share, work in maps.items()}
        assert losses[chosen.residual_share] == min(losses.values())


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
    assert calibrated(told, likelihood_of("bernoulli", 2), X, Y).residual_share == 1.0


def test_the_mean_is_as_it_was() -> None:
    found, X, Y = posterior("bernoulli", 50.0)
    chosen = calibrated(found, likelihood_of("bernoulli", 2), X, Y)
    np.testing.assert_array_equal(chosen.moments(X)[0], found.moments(X)[0])
    assert (chosen.moments(X)[1] <= found.moments(X)[1]).all()


def test_without_rows_nothing_changes() -> None:
    found, X, Y = posterior("bernoulli", 5.0)
    assert calibrated(found, likelihood_of("bernoulli", 2), X[:0], Y[:0]) is found
