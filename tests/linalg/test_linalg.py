"""Factorisations by their definitions, on the matrices that make them hard."""

from __future__ import annotations

import threading
from typing import Any, Literal

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from strategies import dtypes, seeds
from threadpoolctl import threadpool_info

from streamkernel.errors import NumericalError
from streamkernel.linalg import (
    Whitener,
    add_product,
    cholesky,
    independent_rows,
    inverse_norm,
    leading_square,
    mirror_upper,
    require_finite,
    single_threaded_blas,
    solve_lower,
    solve_lower_t,
    symmetric_eigen,
    syrk,
    whitened,
)


@given(b=st.integers(0, 50), n=st.integers(0, 30), dtype=dtypes, seed=seeds)
def test_syrk_adds_into_one_triangle_only(b: int, n: int, dtype: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, start = rng.standard_normal((b, n)).astype(dtype), rng.standard_normal((n, n)).astype(dtype)
    sums = start.copy()
    syrk(K, into=sums)
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(np.triu(sums), np.triu(start + K.T @ K), rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(np.tril(sums, -1), np.tril(start, -1))
    whole = mirror_upper(sums.astype(np.float64))
    np.testing.assert_array_equal(whole, whole.T)
    other = start.copy()
    syrk(K, into=other, lower=True)
    np.testing.assert_allclose(np.tril(other), np.tril(start + K.T @ K), rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(np.triu(other, 1), np.triu(start, 1))


@given(b=st.integers(0, 50), n=st.integers(0, 30), k=st.integers(0, 30), first=st.integers(0, 5), seed=seeds)
def test_products_of_columns_are_added_in_place(b: int, n: int, k: int, first: int, seed: int) -> None:
    """Of columns that stand among others, into sums that do."""
    rng = np.random.default_rng(seed)
    wide, start = rng.standard_normal((b, n + k + 3 * first)), rng.standard_normal((n, k + 2 * first))
    A, B = wide[:, first : first + n], wide[:, first + n : first + n + k]
    sums, expected = start.copy(), start.copy()
    expected[:, first : first + k] += A.T @ B
    add_product(A, B, into=sums[:, first : first + k])
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-12)


def test_products_of_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="do not add"):
        add_product(np.ones((3, 2)), np.ones((3, 4)), into=np.zeros((2, 5)))
    with pytest.raises(ValueError, match="whole rows"):
        add_product(np.ones((3, 2)), np.ones((3, 4), order="F"), into=np.zeros((2, 4)))


@given(b=st.integers(0, 50) | st.integers(500, 1100), n=st.integers(0, 200), seed=seeds)
def test_rows_are_whitened_in_place(b: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    L = np.linalg.cholesky(A @ A.T + n * np.eye(n))
    K = rng.standard_normal((b, n))
    G = K.copy()
    Whitener(L)(G)
    np.testing.assert_allclose(G @ L.T, K, rtol=0, atol=1e-13 * (1 + np.abs(K).max(initial=0.0)))


@pytest.mark.parametrize("least", [1e-2, 1e-6, 1e-12])
def test_whitening_is_backward_stable_on_a_kernel_whose_pivots_vanish(least: float) -> None:
    """``|G L^T - K|`` stays at the rounding of K however small the pivots: a block is inverted only where it may be."""
    n = 150
    x = np.linspace(0.0, 1.0, n)[:, None]
    K = np.exp(-((x - x.T) ** 2) / 0.02) + least * np.eye(n)
    L = np.linalg.cholesky(K)
    rows = np.exp(-((np.random.default_rng(0).random((700, 1)) - x.T) ** 2) / 0.02)
    G = rows.copy()
    Whitener(L)(G)
    scale = (np.abs(G) @ np.abs(L.T)).max()
    assert np.abs(G @ L.T - rows).max() < 1e-13 * scale


@pytest.mark.parametrize(
    "K", [np.zeros((3, 4), order="F"), np.zeros((3, 8))[:, ::2], np.zeros(3), np.zeros((3, 4), np.float32)]
)
def test_wrong_layouts_are_refused_rather_than_misread(K: Any) -> None:
    with pytest.raises((ValueError, KeyError)):
        syrk(K, into=np.zeros((4, 4)))
    with pytest.raises((ValueError, KeyError)):
        Whitener(np.eye(4))(K)


def test_a_wrong_size_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        syrk(np.zeros((3, 4)), into=np.zeros((5, 5)))
    with pytest.raises(ValueError, match="shape"):
        Whitener(np.eye(3))(np.zeros((3, 4)))


@given(n=st.integers(0, 25), rank=st.integers(1, 25), seed=seeds)
def test_independent_rows_are_kept_in_order(n: int, rank: int, seed: int) -> None:
    """Rows beyond the rank, and copies of rows, are left out; what is kept is factored."""
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((n, rank))
    copies = rng.random(n) < 0.3
    for i in np.flatnonzero(copies):
        factor[i] = factor[rng.integers(0, i)] if i else factor[i]
    S = factor @ factor.T
    found = independent_rows(S, 1e-10)
    expected: list[int] = []
    for i in range(n):
        if np.linalg.matrix_rank(factor[[*expected, i]], tol=1e-4) == len(expected) + 1:
            expected.append(i)
    assert found.kept.tolist() == expected
    np.testing.assert_allclose(found.L @ found.L.T, S[np.ix_(expected, expected)], atol=1e-8)
    np.testing.assert_array_equal(found.L, np.tril(found.L))


@pytest.mark.parametrize(("most", "within"), [(2.1, True), (1.9, False)])
def test_the_norm_of_an_inverse_is_compared_with_the_most_that_is_asked(most: float, within: bool) -> None:
    """The first estimate is that of a vector of length 1: of a longer one it would be above any bound."""
    found = inverse_norm(np.diag(np.where(np.arange(100) < 50, 1.0, np.sqrt(0.5))), np.ones(100), most)
    assert (found <= most) == within
    assert found <= 2.0 * (1.0 + 1e-12)


def test_a_row_whose_numbers_overflow_is_left_out() -> None:
    """Its entry of 1e350 is infinite, and 0 times this is NaN: a pivot that is no number is no large one."""
    S = np.array([[1e-300, 0.0, 1e200], [0.0, 1.0, 0.0], [1e200, 0.0, 1e300]])
    found = independent_rows(S, 1e-10)
    np.testing.assert_array_equal(found.kept, [0, 1])
    np.testing.assert_allclose(found.L, np.diag([1e-150, 1.0]), rtol=1e-12)


def test_rows_that_are_dependent_together_are_left_out() -> None:
    """Kahan's matrix: pivots .84^i, the last one of 60 is 3e-5, and the inverse has entries of 1e8 and more."""
    n, c = 60, 0.4
    powers = np.sqrt(1 - c * c) ** np.arange(n)
    factor = (np.tril(np.full((n, n), -c), -1) + np.eye(n)) * powers
    found = independent_rows(factor @ factor.T, 1e-12, most_rounding=1e14)
    r = len(found.kept)
    assert 30 < r < 50
    assert found.kept.tolist() == list(range(r))
    np.testing.assert_allclose(np.diagonal(found.L), powers[:r], rtol=0.05)
    known = independent_rows(factor @ factor.T, 1e-12, found.L[:20, :20], most_rounding=1.0)
    assert known.kept.tolist() == list(range(20))  # what is known stays


@pytest.mark.parametrize("first", [0, 5])
@pytest.mark.parametrize("n", [12, 41])
def test_rows_are_judged_by_their_pivot_and_its_rounding(n: int, first: int) -> None:
    """By its coefficients w in the rows that are kept, from systems of equations of their own, a row is kept or not."""
    rng = np.random.default_rng(n)
    X = rng.uniform(0.0, 0.5 * n, n)
    X[first + 4] = X[first + 3]  # a copy
    S = np.exp(-0.5 * (X[:, None] - X) ** 2) * np.outer(scale := rng.uniform(0.5, 2.0, n), scale)
    kept, most, judged = list(range(first)), 1e5, []
    for i in range(first, n):
        w = np.linalg.solve(S[np.ix_(kept, kept)], S[kept, i])
        pivot = S[i, i] - w @ S[kept, i]
        judged.append((S[i, i] + w**2 @ np.diagonal(S)[kept]) / max(pivot, 1e-300))
        if judged[-1] <= most:
            kept.append(i)
    assert first < len(kept) < n - 1  # not the copy alone
    assert not any(0.999 * most < each < 1.001 * most for each in judged), "rounding would decide"
    known = np.linalg.cholesky(S[:first, :first]) if first else None
    found = independent_rows(S, 1e-12, known, most_rounding=most)
    assert (found.kept.tolist(), found.at_once) == (kept, False)
    np.testing.assert_allclose(found.L @ found.L.T, S[np.ix_(kept, kept)], rtol=0.0, atol=1e-13)
    np.testing.assert_array_equal(found.L, np.tril(found.L))


def test_pivots_are_judged_relative_to_their_own_diagonal() -> None:
    tiny = np.diag([1.0, 1e-20, 1e20])
    assert independent_rows(tiny, 1e-12).kept.tolist() == [0, 1, 2]
    zero = np.diag([1.0, 0.0, 2.0])
    assert independent_rows(zero, 1e-12).kept.tolist() == [0, 2]


def test_triangular_solves() -> None:
    L, B = np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([[2.0], [9.0]])
    np.testing.assert_allclose(solve_lower(L, B), [[1.0], [2.0]])
    np.testing.assert_allclose(L.T @ solve_lower_t(L, B), B)
    assert solve_lower(np.zeros((0, 0)), np.zeros((0, 3))).shape == (0, 3)
    assert solve_lower_t(np.zeros((0, 0)), np.zeros((0, 3))).shape == (0, 3)
    assert solve_lower(L, np.zeros((2, 0))).shape == (2, 0)
    with pytest.raises(ValueError, match="do not fit"):
        solve_lower(L, np.zeros(3))
    with pytest.raises(np.linalg.LinAlgError, match="row 1 has a zero"):
        solve_lower_t(np.array([[2.0, 0.0], [1.0, 0.0]]), B)


@given(n=st.integers(1, 30), k=st.integers(0, 5), seed=seeds)
def test_triangles_of_any_layout_are_solved_alike(n: int, k: int, seed: int) -> None:
    """The bits are those of SciPy, which reads no more than the lower triangle; right sides stay as they are."""
    rng = np.random.default_rng(seed)
    wide, B = rng.standard_normal((n, n + 3)), rng.standard_normal((n, 2 * k) if k else n)
    L = wide[:, :n]
    L[np.diag_indices(n)] += 8.0
    for right in (B, np.asfortranarray(B), B[:, ::2] if k else B[::1]):
        before = right.copy()
        for triangle in (L, np.ascontiguousarray(L), np.asfortranarray(L)):
            for solve, trans in ((solve_lower, 0), (solve_lower_t, 1)):
                expected = scipy.linalg.solve_triangular(triangle, right, lower=True, trans=trans)
                np.testing.assert_array_equal(solve(triangle, right), expected)
        np.testing.assert_array_equal(right, before)


@given(n=st.integers(0, 40), seed=seeds)
def test_what_stands_below_the_diagonal_is_not_read(n: int, seed: int) -> None:
    upper = np.triu(np.random.default_rng(seed).standard_normal((n, n)))
    unset = np.where(np.tri(n, k=-1, dtype=bool), np.nan, upper)
    np.testing.assert_array_equal(mirror_upper(unset), upper + np.triu(upper, 1).T)


def test_a_symmetric_matrix_is_whitened_from_its_upper_triangle() -> None:
    rng = np.random.default_rng(0)
    A, L = rng.standard_normal((9, 7)), np.tril(rng.standard_normal((7, 7))) + 4 * np.eye(7)
    H = A.T @ A
    expected = np.linalg.solve(L, np.linalg.solve(L, H).T)
    found = whitened(np.triu(H) + np.tril(np.full((7, 7), np.nan), -1), L)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    assert whitened(np.zeros((0, 0)), np.zeros((0, 0))).shape == (0, 0)


def test_eigenvalues_ascend_and_rebuild() -> None:
    A = np.random.default_rng(0).standard_normal((20, 20))
    A = A + A.T
    found = symmetric_eigen(A)
    assert (np.diff(found.values) >= 0).all()
    np.testing.assert_allclose(found.vectors * found.values @ found.vectors.T, A, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_named_before_lapack_sees_it(bad: float) -> None:
    A = np.eye(3)
    A[0, 1] = A[1, 0] = bad
    for action in (cholesky, symmetric_eigen):
        with pytest.raises(NumericalError, match=r"the sums has 2 values that are NaN or infinite out of 9"):
            action(A, "the sums")
    with pytest.raises(NumericalError):
        independent_rows(A, 1e-12)
    with pytest.raises(NumericalError):
        require_finite(A, "it")
    require_finite(np.eye(2), "it")


def test_an_indefinite_matrix_is_a_numerical_error() -> None:
    with pytest.raises(NumericalError, match="A is not positive definite to working precision; take a shorter"):
        cholesky(np.diag([1.0, -1.0]), "A")
    with pytest.raises(NumericalError, match=r"precision; give noise$"):
        cholesky(np.diag([1.0, -1.0]), "A", "give noise")


# --------------------------------------------------------------------------------------------------- one BLAS thread
def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_has_one_thread_inside_and_its_own_number_outside() -> None:
    before = blas_threads()
    with single_threaded_blas():
        assert blas_threads() == {1}
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before
    with pytest.raises(RuntimeError), single_threaded_blas():
        raise RuntimeError
    assert blas_threads() == before


def test_the_last_of_several_tasks_restores_the_threads() -> None:
    before = blas_threads()
    inside, first_left = threading.Barrier(2), threading.Event()
    seen: list[set[int]] = []

    def first() -> None:
        with single_threaded_blas():
            inside.wait()
        first_left.set()

    def second() -> None:
        with single_threaded_blas():
            inside.wait()
            first_left.wait()
            seen.append(blas_threads())

    tasks = [threading.Thread(target=task) for task in (first, second)]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    assert seen == [{1}]
    assert blas_threads() == before


@pytest.mark.parametrize(("size", "n"), [(1, 1), (1, 0), (7, 7), (7, 6), (50, 1), (50, 26), (90, 80)])
def test_leading_square_is_in_the_memory_of_the_matrix_or_a_small_copy(size: int, n: int) -> None:
    matrix = np.random.default_rng(size).standard_normal((size, size))
    wanted, place = matrix[:n, :n].copy(), matrix.ctypes.data
    found = leading_square(matrix, n)
    np.testing.assert_array_equal(found, wanted)
    assert found.flags.c_contiguous
    assert (found.ctypes.data == place) == (2 * n * n >= size * size)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_triangle_within_a_larger_matrix(order: Literal["C", "F"], *, transposed: bool) -> None:
    """A leading square, and views that BLAS cannot read in place: steps, rows in reverse, rows that overlap, rows
    that do not begin with a number."""
    rng = np.random.default_rng(2)
    large = np.array(np.tril(rng.standard_normal((12, 12))) + 5 * np.eye(12), order=order)
    b = rng.standard_normal((12, 2))
    overlapping = np.lib.stride_tricks.sliding_window_view(np.linspace(1.0, 2.0, 13), 7)
    uneven = np.zeros(7, [("row", "f8", (7,)), ("other", "i4")])["row"]
    uneven[:] = large[:7, :7]
    for L in (
        overlapping,
        uneven,
        large[:7, :7],
        large[2:9, 2:9],
        large[:1, :1],
        large[::2, ::2],
        large[::-1, ::-1].T,
        large,
    ):
        found, triangle = (solve_lower_t if transposed else solve_lower)(L, b[: len(L)]), np.tril(L)
        np.testing.assert_allclose((triangle.T if transposed else triangle) @ found, b[: len(L)], rtol=0, atol=1e-12)
