"""Quadratic programs in boxes against what defines their solutions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import few_examples, seeds

from streamkernel.errors import NumericalError
from streamkernel.linalg import box_maximum


@few_examples(0.5)
@given(seed=seeds, constant=st.sampled_from([0.0, 1.0, 1e3]), width=st.sampled_from([0.0, 1e-3, 1.0, 1e3]))
def test_no_variable_can_be_moved_for_more(seed: int, constant: float, width: float) -> None:
    rng = np.random.default_rng(seed)
    b = int(rng.integers(1, 30))
    factor = rng.standard_normal((b, int(rng.integers(1, 40))))
    K = factor @ factor.T + constant
    linear, low, high = rng.standard_normal(b), -width * rng.uniform(0, 1, b), width * rng.uniform(0, 1, b)
    u = box_maximum(K, linear, low, high, 1e-9)
    assert (low <= u).all()
    assert (u <= high).all()
    slope = linear - K @ u
    tolerance = 1e-9 + 1e-12 * np.abs(K).max() * max(width, 1.0)
    assert (slope[u < high] <= tolerance).all()
    assert (slope[u > low] >= -tolerance).all()


def test_bad_matrices() -> None:
    with pytest.raises(NumericalError, match="the matrix of a quadratic program"):
        box_maximum(np.full((2, 2), np.nan), np.ones(2), np.zeros(2), np.ones(2), 1e-8)


def test_wide_boxes_of_equal_rows_take_what_is_reached() -> None:
    X = np.repeat(np.random.default_rng(0).standard_normal((20, 2)), 2, axis=0)
    K, t = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2)), np.where(np.arange(40) % 2, 1.0, -1.0)
    t[:10] = 1.0
    u = box_maximum(K, t, np.minimum(1e4 * t, 0.0), np.maximum(1e4 * t, 0.0), 1e-12)
    slope = t - K @ u
    assert slope[u < np.maximum(1e4 * t, 0.0)].max() <= 1e-7
    assert slope[u > np.minimum(1e4 * t, 0.0)].min() >= -1e-7


def test_too_many_steps_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamkernel.linalg import box_program

    monkeypatch.setattr(box_program, "_MOST_STEPS", 3)
    X = np.random.default_rng(0).standard_normal((40, 3))
    with pytest.raises(NumericalError, match=r"40 variables is not solved to 0.001 after 3 steps; take a smaller C"):
        box_maximum(X @ X.T, np.ones(40), np.zeros(40), np.ones(40), 1e-8)
