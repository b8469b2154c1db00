"""Alpha or noise that no digit carries is refused by name; what rounding leaves makes a sane model."""

from __future__ import annotations

import re

import numpy as np
import pytest

from streamkernel import BayesianCommitteeMachine, GaussianProcessRegressor, KernelRidge, KernelRidgeClassifier
from streamkernel.errors import NumericalError

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (80, 3))
y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.standard_normal(80)
apart = rng.uniform(-1.0, 1.0, (500, 3))
RIDGE = {"n_components": 80, "lengthscale": 1.5, "solver": "direct"}
GP = {"lengthscale": 1.5, "signal_variance": 1.0}


@pytest.mark.parametrize("alpha", [1e-300, 1e-30, 1e-16])
def test_the_least_alpha_is_named_and_enough(alpha: float) -> None:
    with pytest.raises(NumericalError, match=r"the least that their digits carry is .*gcv") as caught:
        KernelRidge(alpha=alpha, **RIDGE).fit(X, y)
    found = re.search(r"carry is ([\d.e-]+):", str(caught.value))
    assert found is not None
    model = KernelRidge(alpha=1.1 * float(found.group(1)), **RIDGE).fit(X, y)
    reference = KernelRidge(alpha=1e-8, **RIDGE).fit(X, y).predict(apart)
    assert np.abs(model.predict(apart)).max() < 3.0 * np.abs(reference).max()


def test_a_classifier_has_the_guard() -> None:
    with pytest.raises(NumericalError, match="the least"):
        KernelRidgeClassifier(alpha=1e-30, **RIDGE).fit(X, y > 0)


@pytest.mark.parametrize("approximation", ["dtc", "fitc"])
def test_noise_is_refused_or_harmless(approximation: str) -> None:
    reference = GaussianProcessRegressor(80, noise_variance=1e-9, approximation=approximation, **GP).fit(X, y)
    for noise in (1e-300, 1e-30, 1e-16):
        model = GaussianProcessRegressor(80, noise_variance=noise, approximation=approximation, **GP)
        if approximation == "fitc":
            with pytest.raises(NumericalError, match="the least that the digits carry is"):
                model.fit(X, y)
        else:
            found = model.fit(X, y).predict(apart)
            assert np.abs(found).max() < 3.0 * np.abs(reference.predict(apart)).max()


def test_a_committee_has_the_guard() -> None:
    with pytest.raises(NumericalError, match="noise"):
        BayesianCommitteeMachine(60, block_size=40, noise_variance=1e-30, **GP).fit(X, y)


@pytest.mark.parametrize("alpha", ["gcv", pytest.param("cv", marks=pytest.mark.slow)])
def test_targets_without_noise_get_a_small_alpha(alpha: str) -> None:
    """The rounding of the sums sets a floor for alpha; with smooth functions it once was 16 times the least error."""
    rows = np.random.default_rng(0).uniform(-1.0, 1.0, (8000, 3))
    target = np.sin(3.0 * rows[:, 0] + 2.0 * rows[:, 1] * rows[:, 2]) * np.cos(2.0 * rows[:, 1])
    options = {"kernel": "matern52", "lengthscale": 30.0, "metric": "none", "random_state": 0}

    def error(alpha: float | str) -> float:
        model = KernelRidge(300, alpha=alpha, **options).fit(rows[:6000], target[:6000])
        return float(np.sqrt(np.mean((model.predict(rows[6000:]) - target[6000:]) ** 2)))

    assert error(alpha) < 1.5 * error(1e-7)
