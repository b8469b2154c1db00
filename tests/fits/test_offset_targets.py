"""Targets are about their mean everywhere: a large constant costs its rounding, and is no reason to refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from slow_cases import slow_but

from streamkernel import BayesianCommitteeMachine, GaussianProcessRegressor, KernelMatchingPursuit, KernelRidge

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, (300, 2))
y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(300)
apart = rng.uniform(-2.0, 2.0, (100, 2))

GIVEN = {"lengthscale": 1.0, "noise_variance": 0.04, "signal_variance": 1.0}
MODELS: dict[str, Any] = {
    "ridge": KernelRidge(30),
    "csi": KernelRidge(30, rule="csi"),
    "pursuit": KernelMatchingPursuit(20),
    "gp": GaussianProcessRegressor(30, **GIVEN),
    "committee": BayesianCommitteeMachine(30, block_size=100, **GIVEN),
    "gp, found": GaussianProcessRegressor(30),
    "gp, full": GaussianProcessRegressor(30, tune="full"),
    "dtc, found": GaussianProcessRegressor(30, approximation="dtc"),
    "committee, found": BayesianCommitteeMachine(30, block_size=100),
}


@pytest.mark.parametrize("name", slow_but(MODELS.keys() - {"gp, full", "committee, found"}, MODELS))
def test_a_constant_is_added_and_nothing_else_changes(name: str) -> None:
    plain = MODELS[name].fit(X, y).predict(apart)
    near = MODELS[name].fit(X, y + 1e6).predict(apart) - 1e6
    far = MODELS[name].fit(X, y + 1e10).predict(apart) - 1e10
    np.testing.assert_allclose(near, plain, atol=1e-6)
    # What a search finds moves with the rounding of the targets, which is 2e-6 here.
    np.testing.assert_allclose(far, plain, atol=0.05 if "found" in name or "full" in name else 2e-5)
