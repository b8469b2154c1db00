"""LAPACK by its own calls: the numbers of SciPy, which holds the interpreter's lock, and other threads that go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.errors import NumericalError
from streamkernel.linalg import (
    pivoted_factor,
    single_threaded_blas,
    solve_lower,
    solve_lower_t,
    symmetric_eigen,
    whitened,
)
from streamkernel.linalg._blas import MOST_DECOMPOSED
from streamkernel.linalg.tridiagonal import Tridiagonal

SIZES = st.integers(1, 40)


def problem(n: int, d: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A positive definite matrix, its lower factor, and right sides."""
    generator = np.random.default_rng(n)
    A = generator.standard_normal((n, n + 3))
    S = A @ A.T
    return S, np.linalg.cholesky(S), generator.standard_normal((n, d))


@given(SIZES, st.integers(1, 5), st.sampled_from("CF"), st.sampled_from("CF"))
def test_triangles(n: int, d: int, of_factor: Any, of_right: Any) -> None:
    _, L, B = problem(n, d)
    L, B = np.asarray(L, order=of_factor), np.asarray(B, order=of_right)
    before = L.copy(), B.copy()
    for solve, trans in ((solve_lower, 0), (solve_lower_t, 1)):
        expected = scipy.linalg.solve_triangular(L, B, lower=True, trans=trans)
        np.testing.assert_allclose(solve(L, B), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(solve(L, B[:, 0]), expected[:, 0], rtol=1e-12, atol=1e-12)
    assert (before[0] == L).all()
    assert (before[1] == B).all()


def test_parts_of_arrays_and_other_numbers() -> None:
    """Factors and right sides may be views, in single precision, or integers."""
    _, L, B = problem(12, 6)
    wide = np.zeros((24, 30))
    wide[::2, 5:17] = L
    np.testing.assert_array_equal(solve_lower(wide[::2, 5:17], B[:, ::2]), solve_lower(L, B[:, ::2]))
    single = solve_lower(L.astype(np.float32), B.astype(np.float32))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, solve_lower(L, B), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(solve_lower(np.eye(3), np.arange(3)), [0.0, 1.0, 2.0])


@pytest.mark.parametrize("solve", [solve_lower, solve_lower_t])
def test_a_zero_on_the_diagonal(solve: Callable[..., Any]) -> None:
    L = np.tril(np.ones((4, 4)))
    L[2, 2] = 0.0
    with pytest.raises(np.linalg.LinAlgError, match="row 2 has a zero"):
        solve(L, np.ones(4))


@given(SIZES, st.sampled_from("CF"))
def test_gram_matrices_are_whitened(n: int, order: Any) -> None:
    H, L, _ = problem(n)
    expected = scipy.linalg.solve_triangular(L, scipy.linalg.solve_triangular(L, H, lower=True).T, lower=True)
    below = H.copy()
    below[np.tril_indices(n, -1)] = np.nan  # only the upper triangle is read
    np.testing.assert_allclose(whitened(below, np.asarray(L, order=order)), expected, rtol=1e-9, atol=1e-9)


@given(st.integers(0, 40))
def test_eigenvectors(n: int) -> None:
    S = problem(n)[0] if n else np.zeros((0, 0))
    before = S.copy()
    found = symmetric_eigen(S)
    if n:
        values, vectors = scipy.linalg.eigh(S, driver="evd")
        np.testing.assert_array_equal(found.values, values)
        np.testing.assert_array_equal(found.vectors, vectors)
    assert found.vectors.shape == (n, n)
    assert (before == S).all()


def test_more_rows_than_lapack_decomposes_are_refused_before_any_memory() -> None:
    """Its work array has 2 n^2 + 6 n + 1 numbers, which are counted in 32 bits."""
    fits, beyond = (2 * n**2 + 6 * n + 1 for n in (MOST_DECOMPOSED, MOST_DECOMPOSED + 1))
    assert fits < 2**31 <= beyond
    large = np.broadcast_to(0.0, (MOST_DECOMPOSED + 1, MOST_DECOMPOSED + 1))
    with pytest.raises(NumericalError, match=r"the matrix has 32,767 rows, and LAPACK decomposes at most 32,766"):
        symmetric_eigen(large)


@given(st.integers(0, 30), st.integers(0, 30))
def test_pivoted_factors(n: int, rank: int) -> None:
    A = np.random.default_rng(n).standard_normal((n, min(rank, n)))
    S = A @ A.T
    U, order = pivoted_factor(S)
    found = len(U)
    assert U.shape == (found, n)
    assert sorted(order) == list(range(n))
    assert found == np.linalg.matrix_rank(S, hermitian=True) if n else found == 0
    np.testing.assert_allclose(U.T @ U, S[order][:, order], atol=1e-9)


@pytest.mark.parametrize(
    ("what", "n", "least"),
    [
        ("eigenvectors", 1000, 40),
        ("reduced", 1500, 40),
        ("vectors", 1000, 40),
        ("whitened", 2000, 80),
        ("pivots", 2000, 40),
    ],
)
def test_other_threads_run_meanwhile(what: str, n: int, least: int) -> None:
    """A thread that sends heartbeats must not wait for the minutes of a large decomposition."""
    S, L, _ = problem(n)
    form = Tridiagonal.of(S if what == "vectors" else S[:1, :1])
    beats, ended = 0, threading.Event()

    def beat() -> None:
        nonlocal beats
        while not ended.wait(0.0005):
            beats += 1

    calls: dict[str, Callable[[], Any]] = {
        "eigenvectors": lambda: symmetric_eigen(S),
        "reduced": lambda: Tridiagonal.of(S),
        "vectors": form.vectors,
        "whitened": lambda: whitened(S, L),
        "pivots": lambda: pivoted_factor(S),
    }
    thread = threading.Thread(target=beat)
    thread.start()
    try:
        with single_threaded_blas():
            before = beats
            calls[what]()
            during = beats - before
    finally:
        ended.set()
        thread.join()
    # With the lock held it beats before and after the call, and while arrays are copied: 5, 30 and 28 times.
    assert during > least
