"""A basis: factor, features, residual; dependent points left out in the order of picking."""

from __future__ import annotations

import pickle
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from problems import basis_of
from strategies import rows

from streamkernel.basis import Basis
from streamkernel.errors import SingularKernelError
from streamkernel.kernels import Gaussian, Laplacian, Linear
from streamkernel.linalg import RankRevealed, independent_rows


@given(X=rows(min_rows=2, max_rows=40))
def test_features_are_a_factor_of_the_nystroem_approximation(X: Any) -> None:
    kernel = Gaussian(float(np.abs(X).max()) or 1.0)
    empty = Basis.empty(kernel, X.shape[1], X.dtype)
    basis, kept = empty.append(X[:12], np.arange(12)[: len(X)])
    K = naive.gaussian(X.astype(np.float64), X.astype(np.float64), kernel.lengthscale)
    np.testing.assert_array_equal(basis.rows, kept)
    np.testing.assert_allclose(basis.L @ basis.L.T, K[np.ix_(kept, kept)], atol=1e-12)
    tolerance = 1e-5  # pivots go down to 1e-12, and whitening lifts rounding by 1 / sqrt(pivot)
    G = basis.features(X)
    assert G.dtype == np.float64
    approximation = K - naive.residual(K, kept)
    np.testing.assert_allclose(G @ G.T, approximation, atol=tolerance)
    residual = basis.residual(X)
    assert (residual >= 0).all()
    np.testing.assert_allclose(residual, np.maximum(np.diag(K - approximation), 0), atol=tolerance)


def test_residual_and_features_in_float64_are_exact() -> None:
    X = np.random.default_rng(0).standard_normal((80, 4))
    basis = basis_of(X, range(20), Laplacian(2.0))
    K = Laplacian(2.0)(X)
    np.testing.assert_allclose(basis.residual(X), np.diag(naive.residual(K, range(20))), atol=1e-13)
    np.testing.assert_allclose(basis.features(X)[:20], basis.L, atol=1e-12)


def test_dependent_points_are_left_out_where_they_come() -> None:
    X = np.random.default_rng(0).standard_normal((6, 2))
    Z = X[[0, 1, 0, 2, 1, 3]]
    basis, kept = Basis.empty(Gaussian(1.0), 2, Z.dtype).append(Z, np.arange(6) + 10)
    assert kept.tolist() == [0, 1, 3, 5]
    assert basis.rows.tolist() == [10, 11, 13, 15]
    grown, new = basis.append(X[[3, 4, 0, 5]], np.array([20, 21, 22, 23]))
    assert new.tolist() == [1, 3]
    assert grown.rows.tolist() == [10, 11, 13, 15, 21, 23]
    np.testing.assert_allclose(grown.L @ grown.L.T, grown.gram(), atol=1e-14)
    np.testing.assert_array_equal(grown.L[:4, :4], basis.L)


def test_the_rank_of_a_linear_kernel() -> None:
    X = np.random.default_rng(0).standard_normal((30, 3))
    basis, kept = Basis.empty(Linear(), 3, X.dtype).append(X, np.arange(30))
    assert kept.tolist() == [0, 1, 2]
    assert basis.residual(X).max() < 1e-12


def test_a_basis_of_dependent_points_is_refused_rather_than_jittered() -> None:
    X = np.zeros((2, 2))
    with pytest.raises(SingularKernelError, match="dependent"):
        basis_of(X, [0, 1]).L


def test_an_empty_basis() -> None:
    X = np.random.default_rng(0).standard_normal((5, 2))
    empty = Basis.empty(Gaussian(1.0), 2, X.dtype)
    assert len(empty) == 0
    assert empty.features(X).shape == (5, 0)
    np.testing.assert_array_equal(empty.residual(X), 1.0)
    assert empty.L.shape == (0, 0)


def test_what_travels_is_points_and_kernel_only() -> None:
    X = np.random.default_rng(0).standard_normal((200, 3))
    basis = basis_of(X, range(200), Gaussian(0.2))
    assert basis.L.nbytes == 320_000
    assert len(pickle.dumps(basis)) < 10_000
    again = pickle.loads(pickle.dumps(basis))
    np.testing.assert_array_equal(again.L, basis.L)
    np.testing.assert_array_equal(again.features(X), basis.features(X))


def test_take_keeps_order_and_numbers() -> None:
    X = np.random.default_rng(0).standard_normal((9, 2))
    part = basis_of(X, [7, 2, 5]).take(np.array([2, 0]))
    assert part.rows.tolist() == [5, 7]
    np.testing.assert_array_equal(part.points, X[[5, 7]])


def test_the_least_pivot_is_relative() -> None:
    X = np.array([[0.0], [1.0], [1.001]])
    basis = basis_of(X, [0, 1, 2])
    pivots = [1.0, *(naive.residual_diagonal(naive.gaussian(X, X), list(range(t)))[t] for t in (1, 2))]
    assert basis.least_pivot == pytest.approx(min(pivots), rel=1e-6)
    assert Basis.empty(Linear(), 1, X.dtype).least_pivot == 1.0
    scaled = basis_of(1e-6 * X[1:2], [0], Linear())
    assert scaled.least_pivot == pytest.approx(1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_are_exact_whatever_the_dtype_of_the_rows(dtype: Any) -> None:
    """float32 rows are numbers like any other: their kernel values, features and residuals are float64's."""
    X = np.random.default_rng(0).standard_normal((60, 3)).astype(dtype)
    basis = basis_of(X, range(30))
    K = naive.gaussian(X, X)
    np.testing.assert_allclose(basis.block(X), K[:, :30], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(basis.residual(X), np.maximum(np.diag(naive.residual(K, range(30))), 0), atol=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_kept_of_many_smooth_functions_has_a_factor_everywhere(seed: int) -> None:
    """Pivots near 1e-12 are rounding, which another order of operations rounds otherwise."""
    X = np.random.default_rng(seed).standard_normal((300, 5))
    kernel = Gaussian((4.0, 4.0, 300.0, 300.0, 300.0))
    basis, kept = Basis.empty(kernel, 5, X.dtype).append(X, np.arange(300))
    assert 20 < len(basis) < 300
    np.testing.assert_array_equal(basis.points, X[kept])
    elsewhere = pickle.loads(pickle.dumps(basis))
    np.testing.assert_array_equal(elsewhere.L, basis.L)
    assert elsewhere.features(X).shape == (300, len(basis))


def few_values(seed: int, m: int) -> Any:
    """One column of many values, two of few."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-0.5, 0.5, m), rng.integers(0, 3, m), rng.integers(0, 4, m)])
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("seed", [14, 32, 59])
def test_a_basis_never_shrinks(seed: int) -> None:
    """The rows that it leaves most of, again and again, until pivots are rounding: what was in it stays."""
    X = few_values(seed, 500)
    basis = Basis.empty(Gaussian(1.0), 3, X.dtype)
    for _ in range(20):
        rows = np.argsort(-basis.residual(X), kind="stable")[:8]
        rows = rows[~np.isin(rows, basis.rows)]
        grown, kept = basis.append(X[rows], rows)
        np.testing.assert_array_equal(grown.rows, np.concatenate([basis.rows, rows[kept]]))
        np.testing.assert_array_equal(grown.points, X[grown.rows])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(grown)).L, grown.L)
        basis = grown
    assert len(basis) > 30


def test_points_that_spoil_the_factor_of_the_others_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rounding of a larger matrix loses a pivot that was good before, new points go, half of them at a time."""
    X = np.random.default_rng(0).standard_normal((20, 3))
    basis, _ = Basis.empty(Gaussian(1.0), 3, X.dtype).append(X[:8], np.arange(8))
    asked = []

    def unlucky(S: Any, tolerance: float, known: Any = None, *rest: Any) -> RankRevealed:
        asked.append(len(S))
        found = independent_rows(S, tolerance, known, *rest)
        if len(S) > 8 + 3:
            # As if the third point of the basis were lost, and not by tolerance.
            kept = found.kept if known is not None else np.delete(found.kept, 2)
            return RankRevealed(kept, found.L)
        return found

    monkeypatch.setattr("streamkernel.basis.independent_rows", unlucky)
    grown, kept = basis.append(X[8:], np.arange(8, 20))
    assert asked == [20, 20, 14, 11]
    assert grown.rows.tolist() == [*range(8), 8, 9, 10]
    assert kept.tolist() == [0, 1, 2]


def test_a_pivot_that_only_one_way_of_factoring_finds_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """`L` is made of all points at once: by that way, too, a new pivot has to exceed the tolerance."""
    X = np.concatenate([np.eye(3), np.eye(3)[:1] + 1e-8])
    basis, _ = Basis.empty(Gaussian(1.0), 3, X.dtype).append(X[:2], np.arange(2))

    def lenient(S: Any, tolerance: float, known: Any = None, *rest: Any) -> RankRevealed:
        found = independent_rows(S, 0.0, known)
        return found if known is None else RankRevealed(found.kept, found.L)

    monkeypatch.setattr("streamkernel.basis.independent_rows", lenient)
    grown, kept = basis.append(X[2:], np.arange(2, 4))
    assert kept.tolist() == [0]
    assert grown.least_pivot > 1e-12
