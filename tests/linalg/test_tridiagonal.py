"""The tridiagonal form against NumPy's eigenvectors and solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.errors import NumericalError
from streamkernel.linalg import _blas, symmetric_eigen
from streamkernel.linalg.eigen import MOST_DECOMPOSED
from streamkernel.linalg.tridiagonal import Tridiagonal
from streamkernel.type_aliases import Float


def semidefinite(seed: int, n: int, rank: int) -> Float:
    G = np.random.default_rng(seed).standard_normal((rank, n))
    found: Float = G.T @ G
    return found


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 40, 130])
def test_values_and_vectors(n: int) -> None:
    A = semidefinite(n, n, n + 3)
    form = Tridiagonal.of(np.tril(A) + np.triu(np.full((n, n), 7.0), 1))  # the lower triangle is read
    np.testing.assert_allclose(form.values, np.linalg.eigvalsh(A), atol=1e-12 * max(n, 1))
    V = form.vectors()
    np.testing.assert_allclose(V.T @ V, np.eye(n), atol=1e-13 * max(n, 1))
    np.testing.assert_allclose((V * form.values) @ V.T, A, atol=1e-12 * max(n, 1))
    T = np.diag(form.diagonal) + np.diag(form.beside, 1) + np.diag(form.beside, -1) if n else A
    Q = form.from_form(np.eye(n))
    np.testing.assert_allclose(Q @ T @ Q.T, A, atol=1e-12 * max(n, 1))
    np.testing.assert_allclose(form.to_form(A), Q.T @ A, atol=1e-12 * max(n, 1))


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(0, 3), st.floats(-6, 6))
def test_solutions_for_some_alphas(seed: int, n: int, d: int, power: float) -> None:
    A, b = semidefinite(seed, n, 2 * n), np.random.default_rng(seed + 1).standard_normal((n, d))
    form, alphas = Tridiagonal.of(A), 10.0**power * np.array([10.0, 1.0])
    turned = form.to_form(b)
    explained, squares, x = form.solve(turned, alphas)
    for k, alpha in enumerate(alphas):
        expected = np.linalg.solve(A + alpha * np.eye(n), b)
        size = np.linalg.cond(A + alpha * np.eye(n)) * 1e-13 * (np.abs(expected).max(initial=0.0) + 1e-300)
        np.testing.assert_allclose(explained[k], (b * expected).sum(axis=0), rtol=1e-9, atol=10.0 * n * size)
        np.testing.assert_allclose(squares[k], (expected**2).sum(axis=0), rtol=1e-6)
        alone = form.solve(turned, alphas[k : k + 1])
        assert alone[0].tobytes() == explained[k].tobytes()
        np.testing.assert_allclose(form.from_form(alone[2]), expected, atol=n * size)
    assert alone[2].tobytes() == x.tobytes()


def test_a_part_without_a_pivot_is_left_out() -> None:
    """A matrix of zeros, or one of lower rank, and no ridge: as the pseudo-inverse does."""
    zeros = Tridiagonal.of(np.zeros((4, 4)))
    explained, squares, x = zeros.solve(np.ones((4, 1)), np.array([0.0]))
    assert (explained.item(), squares.item(), x.any()) == (0.0, 0.0, False)
    half = Tridiagonal.of(np.diag([2.0, 0.0, 0.0]))
    b = np.array([[4.0], [0.0], [0.0]])
    np.testing.assert_allclose(half.from_form(half.solve(half.to_form(b), np.array([0.0]))[2]), b / 2.0)


@pytest.mark.parametrize("scale", [1e-200, 1e-150, 1e150, 1e200])
def test_sums_of_any_size(scale: float) -> None:
    A = semidefinite(3, 30, 60)
    form, plain = Tridiagonal.of(A * scale), Tridiagonal.of(A)
    np.testing.assert_allclose(form.values / scale, plain.values, rtol=1e-10)
    np.testing.assert_allclose(np.abs(form.vectors()), np.abs(plain.vectors()), atol=1e-10)
    b = np.random.default_rng(4).standard_normal((30, 1))
    some, other = (each.from_form(each.solve(each.to_form(b), np.array([0.0]))[2]) for each in (form, plain))
    np.testing.assert_allclose(some * scale, other, rtol=1e-8)


def test_what_cannot_be_reduced_is_refused() -> None:
    with pytest.raises(NumericalError, match="the sums"):
        Tridiagonal.of(np.array([[1.0, np.nan], [np.nan, 1.0]]), "the sums")
    with pytest.raises(NumericalError, match=f"{MOST_DECOMPOSED + 1:,} rows"):
        Tridiagonal.of(np.broadcast_to(0.0, (MOST_DECOMPOSED + 1, MOST_DECOMPOSED + 1)))


@pytest.mark.parametrize(("routine", "place"), [("_STERF", 3), ("_STEDC", 10), ("_SYEVD", 10)])
def test_eigenvalues_that_do_not_converge_are_an_error(
    monkeypatch: pytest.MonkeyPatch, routine: str, place: int
) -> None:
    """LAPACK says so by a number, which is the last argument of its routines."""

    def failed(*arguments: Any) -> None:
        assert len(arguments) == place + 1
        arguments[place]._obj.value = 3

    form = Tridiagonal.of(np.eye(4), "the sums")
    calls = {
        "_STERF": lambda: form.values,
        "_STEDC": form.vectors,
        "_SYEVD": lambda: symmetric_eigen(np.eye(4), "the sums"),
    }
    monkeypatch.setattr(_blas, routine, failed)
    with pytest.raises(NumericalError, match=r"the eigenvalues of the sums did not converge \(LAPACK's d.* with 3\)"):
        calls[routine]()


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="long double has no more digits here")
def test_errors_are_those_of_eigenvectors() -> None:
    """Solutions of sums with a condition up to 1e18, against a Cholesky factor in long double."""
    ratios, wide = [], np.longdouble
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 40))
        G = rng.standard_normal((3 * n, n)) * np.logspace(0, -rng.uniform(1, 9), n)
        G = G @ np.linalg.qr(rng.standard_normal((n, n)))[0]
        H, b = G.T @ G, G.T @ rng.standard_normal((3 * n, 1))
        values, vectors = np.linalg.eigh(H)
        form = Tridiagonal.of(H)
        for alpha in values[-1] * 10.0 ** np.arange(-12.0, 1.0, 2.0):
            expected = solved_in_long_double(H.astype(wide) + wide(alpha) * np.eye(n, dtype=wide), b.astype(wide))
            by_form = form.from_form(form.solve(form.to_form(b), np.array([alpha]))[2])
            by_vectors = vectors @ ((vectors.T @ b) / (np.maximum(values, 0.0) + alpha)[:, None])
            of_form, of_vectors = (np.linalg.norm((each - expected).astype(float)) for each in (by_form, by_vectors))
            ratios.append(of_form / of_vectors)
    assert 0.5 < np.median(ratios) < 1.5
    assert np.quantile(ratios, 0.95) < 4.0


def solved_in_long_double(A: Any, b: Any) -> Any:
    """``A^-1 b`` by Cholesky; NumPy's solvers have float64 only."""
    L, x = np.zeros_like(A), b.copy()
    for j in range(len(A)):
        L[j:, j] = A[j:, j] - L[j:, :j] @ L[j, :j]
        L[j:, j] /= np.sqrt(L[j, j])
        x[j] = (x[j] - L[j, :j] @ x[:j]) / L[j, j]
    for j in reversed(range(len(A))):
        x[j] = (x[j] - L[j + 1 :, j] @ x[j + 1 :]) / L[j, j]
    return x
