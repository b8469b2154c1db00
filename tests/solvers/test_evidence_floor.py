"""The noise variance is not below what rounding leaves of targets that the functions explain."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from streamkernel import GaussianProcessRegressor
from streamkernel.solvers.gaussian_processes._evidence_curve import EvidenceCurve


def test_targets_that_are_explained_have_the_least_noise() -> None:
    values, squares = np.array([1.0, 5.0, 30.0]), np.array([2.0, 7.0, 11.0])
    # As if rounding had taken more than there was: what is left is below 0.
    square = float((squares / values).sum()) * (1.0 - 1e-12)
    curve = EvidenceCurve(values, squares, square, 100, 0.0, least_noise=1e-9)
    alphas = np.geomspace(1e-16, 1e-13, 7)
    np.testing.assert_array_equal(curve.noise_at(alphas), 1e-9)
    assert np.isfinite(curve.score(alphas)).all()
    assert curve.noise_at(np.array([1.0]))[0] > 1e-3


@pytest.mark.parametrize("mean", [1e6, -1e10])
def test_noise_is_not_below_the_rounding_of_the_mean(mean: float) -> None:
    """Targets are known to the last digit of their mean, a constant one and one that a function explains."""
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, size=(120, 2))
    y = mean + np.exp(-((X - X[0]) ** 2).sum(axis=1) / 0.18)
    for target in (np.full(120, mean), y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = GaussianProcessRegressor(
                120, lengthscale=0.3, tune="none", scale="none", approximation="dtc", random_state=0
            ).fit(X, target)
        assert model.noise_variance_[0] >= (np.finfo(np.float64).eps * mean) ** 2 * (1.0 - 1e-9)
