"""The linear map of the features from an average outer product of gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import seeds

from streamkernel.errors import NumericalError
from streamkernel.linalg import metric_factor

Float = NDArray[np.float64]


def products(seed: int, p: int, rank: int | None = None) -> Float:
    """A positive semi-definite matrix with distinct eigenvalues, of rank `rank`."""
    rng = np.random.default_rng(seed)
    V = rotation(rng, p)
    values = np.where(np.arange(p) < (p if rank is None else rank), 0.5 ** np.arange(p) * rng.uniform(0.8, 1.2, p), 0.0)
    return (V * values) @ V.T


def rotation(rng: np.random.Generator, p: int) -> Float:
    return np.linalg.qr(rng.standard_normal((p, p)))[0]


def factor(A: Float, *arguments: Any, **options: Any) -> Float:
    T = metric_factor(A, *arguments, **options)
    assert T is not None
    return T


def power(A: Float, q: float) -> Float:
    """``A^q`` with a trace of p."""
    values, V = np.linalg.eigh(A)
    powers = np.maximum(values, 0.0) ** q
    return (V * (powers * len(A) / powers.sum())) @ V.T


sizes, powers = st.integers(1, 8), st.sampled_from([0.5, 1.0, 2.0])


def test_the_example_of_the_card() -> None:
    T = factor(np.array([[0.24545319, 0.07273219], [0.07273219, 0.19244605]]))
    np.testing.assert_allclose(T @ T.T, [[1.12104871, 0.33218685], [0.33218685, 0.87895129]], atol=1e-7)


@given(seeds, sizes, powers)
def test_the_metric_is_the_power(seed: int, p: int, q: float) -> None:
    A = products(seed, p)
    T = factor(A, q)
    assert T.shape == (p, p)
    np.testing.assert_allclose(T @ T.T, power(A, q), atol=1e-10)
    squares = T.T @ T
    np.testing.assert_allclose(squares, np.diag(np.diagonal(squares)), atol=1e-10)
    assert (np.diff(np.diagonal(squares)) < 0.0).all()
    assert np.square(T).sum() == pytest.approx(p)


@given(seeds, sizes, powers)
def test_no_scale_matters(seed: int, p: int, q: float) -> None:
    A = products(seed, p)
    for scale in (1e-290, 0.3, 1e290):
        np.testing.assert_allclose(factor(scale * A, q), factor(A, q), atol=1e-10)


@given(seeds, sizes, powers)
def test_permuted_columns_permute_the_map(seed: int, p: int, q: float) -> None:
    A = products(seed, p)
    order = np.random.default_rng(seed).permutation(p)
    moved = np.ascontiguousarray(A[np.ix_(order, order)])
    # Two components of nearly equal size may decide on other signs.
    np.testing.assert_allclose(np.abs(factor(moved, q)), np.abs(factor(A, q)[order]), atol=1e-9)
    np.testing.assert_allclose(factor(moved, q, diagonal=True).sum(axis=1), factor(A, q, diagonal=True)[order].sum(1))


@given(seeds, sizes, powers)
def test_rotated_columns_rotate_the_metric(seed: int, p: int, q: float) -> None:
    A, R = products(seed, p), rotation(np.random.default_rng(seed + 1), p)
    T, moved = factor(A, q), factor(R @ A @ R.T, q)
    np.testing.assert_allclose(moved @ moved.T, R @ T @ T.T @ R.T, atol=1e-9)
    assert T.shape == moved.shape


@given(seeds, sizes)
def test_signs_do_not_depend_on_the_eigenvectors(seed: int, p: int) -> None:
    T = factor(products(seed, p))
    largest = np.abs(T).max(axis=0)
    assert (T.max(axis=0) >= (1.0 - 1e-6) * largest).all()


def test_equal_components_take_the_first() -> None:
    """(1, -1) is an eigenvector whose components rounding makes larger or smaller."""
    for noise in (-1e-12, 0.0, 1e-12):
        A = np.array([[1.0 + noise, -0.5], [-0.5, 1.0]])
        T = factor(A, rank=1)
        np.testing.assert_allclose(T, [[1.0], [-1.0]], atol=1e-10)


def test_the_identity_stays() -> None:
    for q in (0.5, 1.0):
        T = factor(3.0 * np.eye(4), q)
        np.testing.assert_allclose(T @ T.T, np.eye(4), atol=1e-14)
        np.testing.assert_array_equal(factor(3.0 * np.eye(4), q, diagonal=True), np.eye(4))


@given(seeds, st.integers(2, 8), st.integers(1, 8))
def test_the_rank_is_that_of_the_matrix_or_the_limit(seed: int, p: int, r: int) -> None:
    known = min(r, p - 1)
    A = products(seed, p, known)
    T = factor(A)
    assert T.shape == (p, known)
    np.testing.assert_allclose(T @ T.T, power(A, 1.0), atol=1e-9)
    one = factor(A, rank=1)
    assert np.square(one).sum() == pytest.approx(p)
    np.testing.assert_allclose(one[:, 0] / np.linalg.norm(one), T[:, 0] / np.linalg.norm(T[:, 0]), atol=1e-7)
    assert factor(A, negligible=0.9).shape == (p, 1)


def test_the_diagonal_scales_each_feature() -> None:
    A = np.array([[4.0, 1.0, 0.0, 0.0], [1.0, 16.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 4.0]])
    T = factor(A, diagonal=True)
    expected = np.zeros((4, 3))
    expected[[0, 1, 3], [0, 1, 2]] = np.array([2.0, 4.0, 2.0]) * np.sqrt(4 / 24)
    np.testing.assert_allclose(T, expected, atol=1e-15)
    np.testing.assert_array_equal(factor(A, diagonal=True, rank=2) > 0, expected[:, :2] > 0)


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_constant_function_gives_no_metric(diagonal: bool) -> None:
    for A in (np.zeros((3, 3)), -1e-20 * np.eye(3), np.zeros((0, 0))):
        assert metric_factor(A, diagonal=diagonal) is None


def test_what_is_refused() -> None:
    with pytest.raises(NumericalError, match="product of gradients"):
        metric_factor(np.diag([1.0, np.nan]))
    with pytest.raises(ValueError, match="square"):
        metric_factor(np.ones((2, 3)))
    for options in ({"power": 0.0}, {"power": np.nan}, {"rank": 0}, {"negligible": 1.0}):
        with pytest.raises(ValueError, match="out of range"):
            metric_factor(np.eye(2), **options)  # type: ignore[arg-type]
