"""Warnings stand at the user's line, whatever lies between it and what warns."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from streamkernel import GaussianProcessRegressor, KernelRidge, Nystroem
from streamkernel.errors import StreamKernelWarning


@pytest.mark.parametrize(
    "estimator", [KernelRidge(20), Nystroem(20), GaussianProcessRegressor(20, tune="none", approximation="dtc")]
)
def test_a_warning_of_fit_is_at_the_call_of_fit(estimator: object) -> None:
    X = np.repeat(np.random.default_rng(0).standard_normal((10, 2)), 5, axis=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, X[:, 0])  # type: ignore[attr-defined]
    [ours] = [warning for warning in caught if issubclass(warning.category, StreamKernelWarning)]
    assert "linearly independent" in str(ours.message)
    assert ours.filename == __file__
