"""A basis of all rows leaves nothing open at any of them: what it leaves open elsewhere is not told by these alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamkernel import GaussianProcessClassifier, GaussianProcessPoissonRegressor

Array = np.ndarray[Any, np.dtype[Any]]


def two_spreads(rows: int, seed: int, p: int = 20) -> tuple[Array, Array]:
    """Two normal classes about one mean, of different spread: far rows are strangers to all others."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    return rng.standard_normal((rows, p)) * np.where(y, 2.0, 1.0)[:, None], y


@pytest.mark.slow
def test_classes_are_as_sure_as_with_half_the_basis() -> None:
    X, y = two_spreads(300, 0)
    apart, truth = two_spreads(1000, 1)

    def loss(size: int) -> float:
        model = GaussianProcessClassifier(size).fit(X, y)
        return float(-np.log(model.predict_proba(apart)[np.arange(1000), truth]).mean())

    half = loss(150)
    for n in (300, 290):
        assert loss(n) < half + 0.03


def test_rates_are_as_good_as_with_half_the_basis() -> None:
    rng = np.random.default_rng(2)
    X, apart = rng.standard_normal((200, 8)), rng.standard_normal((1000, 8))
    y = rng.poisson(np.exp(1.0 + np.sin(X[:, 0])))
    truth = np.exp(1.0 + np.sin(apart[:, 0]))

    def loss(size: int) -> float:
        rate = GaussianProcessPoissonRegressor(size).fit(X, y).predict(apart)
        return float(np.mean(rate - truth * np.log(rate)))

    assert loss(200) < loss(100) + 0.05
