"""Factors and solves that use up their arguments, against the textbook's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import seeds

from streamkernel.linalg import InPlaceCholesky, factor_lower, subtract_gram

sizes = st.integers(1, 40) | st.integers(100, 400)


def positive(b: int, seed: int, least: float = 1.0) -> Any:
    A = np.random.default_rng(seed).standard_normal((b, b))
    return A @ A.T / b + least * np.eye(b)


@example(b=128, q=3, seed=0)
@example(b=129, q=0, seed=0)
@example(b=1000, q=300, seed=0)
@given(b=sizes, q=st.integers(0, 30), seed=seeds)
def test_factor_and_solve(b: int, q: int, seed: int) -> None:
    S = positive(b, seed)
    C, B = S.copy(), np.random.default_rng(seed).standard_normal((b, q))
    solved = B.copy()
    factor = InPlaceCholesky(C)
    assert factor.failed is None
    L = np.tril(C)
    np.testing.assert_allclose(L @ L.T, S, atol=1e-13 * b)
    assert (np.diagonal(L) > 0.0).all()
    np.testing.assert_array_equal(np.triu(C, 1), np.triu(S, 1))
    assert factor.log_det() == pytest.approx(np.linalg.slogdet(S)[1], rel=1e-11, abs=1e-11)
    factor.solve(solved)
    np.testing.assert_allclose(L @ solved, B, atol=1e-13 * b)


@pytest.mark.parametrize("least", [1e-3, 1e-6, 1e-9, 1e-13])
def test_a_kernel_whose_pivots_vanish(least: float) -> None:
    """Backward stable whatever the condition: leaves that are ill-conditioned are not inverted."""
    x = np.linspace(0.0, 1.0, 500)[:, None]
    S = np.exp(-((x - x.T) ** 2) / 0.02) + least * np.eye(500)
    C, B = S.copy(), np.random.default_rng(0).standard_normal((500, 50))
    solved = B.copy()
    factor = InPlaceCholesky(C)
    assert factor.failed is None
    factor.solve(solved)
    L = np.tril(C)
    assert np.abs(L @ L.T - S).max() < 1e-13
    assert np.abs(L @ solved - B).max() < 1e-13 * (np.abs(L) @ np.abs(solved)).max()


@given(b=st.integers(1, 300), seed=seeds, data=st.data())
def test_the_first_row_without_a_pivot_is_told(b: int, seed: int, data: st.DataObject) -> None:
    """Every leading minor before it is positive; it is not."""
    row = data.draw(st.integers(0, b - 1))
    C = positive(b, seed)
    C[row, row] = -1.0
    assert InPlaceCholesky(C).failed == row


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("at", [(0, 0), (3, 1), (199, 5), (250, 250)])
def test_what_is_not_finite_is_told_too(bad: float, at: tuple[int, int]) -> None:
    C = positive(260, 0)
    C[at] = bad
    failed = InPlaceCholesky(C).failed
    assert failed is not None
    assert failed <= at[0]
    small = positive(20, 0)
    small[at[0] % 20, at[1] % 20] = bad
    assert factor_lower(small) is not None


def test_nothing_is_nothing() -> None:
    factor = InPlaceCholesky(np.zeros((0, 0)))
    factor.solve(np.zeros((0, 3)))
    assert (factor.failed, factor.log_det()) == (None, 0.0)


@given(b=st.integers(1, 40), n=st.integers(0, 30), seed=seeds)
def test_a_gram_matrix_is_taken_off_the_lower_triangle(b: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    G, S = rng.standard_normal((b, n)), rng.standard_normal((b, b))
    found = S.copy()
    subtract_gram(G, into=found)
    np.testing.assert_allclose(np.tril(found), np.tril(S - G @ G.T), atol=1e-12)
    np.testing.assert_array_equal(np.triu(found, 1), np.triu(S, 1))


@pytest.mark.parametrize("bad", [np.zeros((3, 3), order="F")[:, :2], np.eye(6)[::2, ::2], np.eye(3, dtype=np.float32)])
def test_wrong_layouts_are_refused_rather_than_misread(bad: Any) -> None:
    with pytest.raises(ValueError):
        InPlaceCholesky(bad)
    with pytest.raises(ValueError):
        InPlaceCholesky(np.eye(3)).solve(bad)
    with pytest.raises(ValueError, match="square"):
        InPlaceCholesky(np.zeros((3, 2)))
