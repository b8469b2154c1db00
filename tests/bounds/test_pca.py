"""The bound of kernel PCA: its formula by hand, its order, and what it must not promise too much about."""

from __future__ import annotations

import math
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.bounds import pca_bound
from streamkernel.errors import ParameterError


def test_formula() -> None:
    found = pca_bound([3.0, 2.0, 0.5], np.full(8, 1.0), 0.1)
    for t, left in ((1, 5.0), (2, 3.0), (3, 2.5)):
        second = (1 + math.sqrt(t)) / math.sqrt(8) * math.sqrt(2 / 8 * 8)
        assert found[t - 1] == pytest.approx(left / 8 + second + math.sqrt(18 / 8 * math.log(160)))


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30), st.floats(1e-6, 0.5), st.floats(0.01, 50.0))
def test_order(shares: list[float], delta: float, unit: float) -> None:
    diagonal = np.ones(40)
    values = np.cumprod(shares) * 40 * np.array([0.5 ** (j + 1) for j in range(len(shares))])
    found = pca_bound(values, diagonal, delta)
    assert np.all(found >= (40 - np.cumsum(values)) / 40)
    assert np.all(pca_bound(values, diagonal, delta / 2) > found)
    np.testing.assert_allclose(pca_bound(unit * values, unit * diagonal, delta, unit), unit * found, rtol=1e-9)


def test_goes_to_the_residual_as_rows_grow() -> None:
    excess = [float(pca_bound([0.4 * m, 0.2 * m], np.ones(m))[-1]) - 0.4 for m in (10**3, 10**5, 10**7)]
    assert excess[0] > excess[1] > excess[2] > 0
    assert excess[2] < 0.01


def test_held_out_residual() -> None:
    for seed in range(10):
        X = np.random.default_rng(seed).standard_normal((600, 2)) * [2.0, 0.3]
        K = naive.gaussian(X, X, 2.0)
        values, vectors = np.linalg.eigh(K[:300, :300])
        values, vectors = values[::-1][:12], vectors[:, ::-1][:, :12]
        along = K[300:, :300] @ vectors / np.sqrt(values)
        held = 1.0 - np.cumsum(along**2, axis=1).mean(axis=0)
        assert np.all(held <= np.minimum.accumulate(pca_bound(values, np.ones(300))))


@pytest.mark.parametrize(
    ("values", "diagonal", "options", "word"),
    [
        ([1.0, 2.0], np.ones(4), {}, "rise"),
        ([3.0, 2.0], np.ones(4), {}, "exceed"),
        ([1.0], np.ones(4), {"delta": 1.0}, "delta"),
        ([1.0], np.ones(4), {"largest": 0.0}, "largest"),
        ([1.0], [], {}, "diagonal"),
    ],
)
def test_bad_input(values: Any, diagonal: Any, options: dict[str, Any], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        pca_bound(values, diagonal, **options)
