"""K~, its ridge inverse and the preconditioner, against dense matrices; every sweep is counted."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import data_sets
import naive
import numpy as np
import pytest
from factored import factors, rows_of, session, stored
from hypothesis import given
from hypothesis import strategies as st
from problems import basis_of, zarr_of_chunks
from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg
from thread_clients import thread_client

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.errors import (
    DTypeError,
    NonFiniteDataError,
    NumericalError,
    ParameterError,
    ShapeError,
    ShapeMismatchError,
)
from streamkernel.factors import FeatureRows, kernel_operator, preconditioner
from streamkernel.kernels import Gaussian, Laplacian
from streamkernel.table import open_table

CARD = naive.card()
SGMA = [17, 4, 27, 33, 29, 20]


def data(m: int = 300, p: int = 3) -> Any:
    return np.random.default_rng(0).standard_normal((m, p))


# --------------------------------------------------------------------------------------------------- against the dense
@given(factors(), st.integers(1, 3), st.sampled_from([0.1, 1.0, 10.0]))
def test_products_and_solves_are_those_of_the_dense_matrix(case: Any, q: int, rho: float) -> None:
    rows, K, chosen = case
    dense, m = naive.nystroem(K, chosen), len(K)
    V = np.random.default_rng(q).standard_normal((m, q))
    where = session()
    plain, shifted = kernel_operator(rows, where), kernel_operator(rows, where, rho)
    tolerance = {"rtol": 1e-7, "atol": 1e-7}
    np.testing.assert_allclose(plain @ V, dense @ V, **tolerance)
    np.testing.assert_allclose(shifted @ V[:, 0], dense @ V[:, 0] + rho * V[:, 0], **tolerance)
    inverse = shifted.inverse()
    np.testing.assert_allclose(inverse @ V, np.linalg.solve(dense + rho * np.eye(m), V), **tolerance)
    np.testing.assert_allclose(inverse @ (shifted @ V), V, **tolerance)
    np.testing.assert_allclose(shifted @ (inverse @ V), V, **tolerance)


def test_a_stored_factor_serves_as_well_as_a_basis() -> None:
    rows = rows_of(data(), range(0, 300, 10), Laplacian(2.0))
    v = np.random.default_rng(1).standard_normal(300)
    for dtype, tolerance in ((np.float64, 1e-11), (np.float32, 1e-5)):
        on_disk = stored(rows, dtype)
        assert on_disk.shape == rows.shape == (300, 30)
        for make in (lambda r: kernel_operator(r, session()), lambda r: preconditioner(r, 0.5, session())):
            np.testing.assert_allclose(make(on_disk) @ v, make(rows) @ v, rtol=tolerance, atol=20 * tolerance)


def test_operators_are_scipys_and_their_own_adjoints() -> None:
    rows = rows_of(data(50), range(8))
    operator, inverse = kernel_operator(rows, session(), 0.3), preconditioner(rows, 0.3, session())
    one, other = np.random.default_rng(2).standard_normal((2, 50))
    for matrix in (operator, inverse):
        assert isinstance(matrix, LinearOperator)
        assert aslinearoperator(matrix) is matrix
        assert (matrix.shape, matrix.dtype) == ((50, 50), np.float64)
        np.testing.assert_array_equal(matrix.H @ one, matrix @ one)
        np.testing.assert_array_equal(matrix.T @ one, matrix @ one)
        assert other @ (matrix @ one) == pytest.approx(one @ (matrix @ other), rel=1e-12)
        np.testing.assert_allclose((matrix @ one[:, None])[:, 0], matrix @ one, rtol=1e-12)
        assert (matrix @ np.arange(50)).dtype == np.float64
    np.testing.assert_allclose((2 * operator + inverse) @ one, 2 * (operator @ one) + inverse @ one, rtol=1e-12)


def test_sweeps_are_counted() -> None:
    rows = rows_of(data(50), range(8))
    where = session()
    v = np.ones(50)
    kernel_operator(rows, where) @ np.ones((50, 7))
    assert [record.name for record in where.records] == ["G^T V", "G A"]
    solve = preconditioner(rows, 1.0, where)
    solve @ (solve @ v)
    assert len(where.records) == 2 + 1 + 4
    sums = rows.gram(where)
    assert len(where.records) == 8
    np.testing.assert_array_equal(preconditioner(rows, 1.0, where, sums) @ v, solve @ v)
    assert len(where.records) == 12


# ------------------------------------------------------------------------------------------------- preconditioner 13.4
@given(factors(max_rows=30), st.sampled_from([1e-2, 1.0, 30.0]))
def test_preconditioned_eigenvalues_lie_in_the_interval(case: Any, rho: float) -> None:
    """eig P^-1 (K + rho I) in [1, 1 + |R|_2 / rho], in [1, 1 + tr R / rho]."""
    rows, K, chosen = case
    m, R = len(K), naive.residual(K, chosen)
    solve = preconditioner(rows, rho, session())
    values = np.linalg.eigvals(solve @ (K + rho * np.eye(m))).real
    tolerance = 1e-7
    assert values.min() >= 1 - tolerance
    assert values.max() <= (1 + np.linalg.norm(R, 2) / rho) * (1 + tolerance)
    assert values.max() <= (1 + np.trace(R) / rho) * (1 + tolerance)
    expected = naive.preconditioned_eigenvalues(K, chosen, rho)
    np.testing.assert_allclose(np.sort(values), expected, rtol=tolerance)


def test_the_cards_preconditioner() -> None:
    """22.1589 <= 24.2313 <= 87.2676, condition 94.84; 26 iterations to 1e-8 plain, 11 with 12 landmarks."""
    K, rho = CARD.K, 0.1
    A, R = K + rho * np.eye(40), naive.residual(K, SGMA)
    solve = preconditioner(rows_of(CARD.X, SGMA), rho, session())
    largest = np.linalg.eigvals(solve @ A).real.max()
    np.testing.assert_allclose(
        [largest, 1 + np.linalg.norm(R, 2) / rho, 1 + np.trace(R) / rho, np.linalg.cond(A)],
        [22.1589, 24.2313, 87.2676, 94.84],
        rtol=5e-5,
    )
    twelve = naive.greedy(K, [range(40)] * 12, naive.function_space).picks
    better = preconditioner(rows_of(CARD.X, twelve), rho, session())
    _, plain = naive.conjugate_gradients(A, CARD.y, lambda v: v, 1e-8)
    x, fewer = naive.conjugate_gradients(A, CARD.y, lambda v: better @ v, 1e-8)
    assert abs(plain - 26) <= 1
    assert abs(fewer - 11) <= 1
    np.testing.assert_allclose(A @ x, CARD.y, atol=1e-6)


def test_scipys_conjugate_gradients_take_it() -> None:
    stored_data = data_sets.load("abalone")
    if stored_data is None:
        pytest.skip("abalone is not in ../shared/data")
    X = np.ascontiguousarray(stored_data.X[:600], dtype=np.float64)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y, kernel, rho = stored_data.y[:600].astype(np.float64), Gaussian(3.0), 0.05
    A = kernel(X) + rho * np.eye(600)
    rows = FeatureRows(open_table(X), basis_of(X, naive.incomplete_cholesky(kernel(X), 40)[0].picks, kernel))
    counts = []
    for M in (None, preconditioner(rows, rho, session())):
        steps: list[int] = []
        x, failed = cg(A, y, rtol=1e-8, M=M, callback=lambda _, steps=steps: steps.append(1))
        assert not failed
        np.testing.assert_allclose(A @ x, y, atol=1e-5)
        counts.append(len(steps))
    assert counts[1] < counts[0] / 3


# -------------------------------------------------------------------------------------------------- wherever it runs
def shuffled(leaves: list[int]) -> list[int]:
    return random.Random(len(leaves)).sample(leaves, len(leaves))


def test_equal_bits_for_any_executor_and_equal_numbers_for_any_chunks(tmp_path: Path) -> None:
    X = data(30_000).astype(np.float32)
    basis = basis_of(X, range(0, 30_000, 1500))
    V = np.random.default_rng(3).standard_normal((29_000, 2))
    products = {}
    for chunk in (1000, 4000, 30_000):
        path = zarr_of_chunks(tmp_path / f"{chunk}.zarr", X, X[:, 0].astype(np.float64), chunk)
        rows = FeatureRows(open_table(path).slice(500, 29_500), basis)
        products[chunk] = preconditioner(rows, 0.1, session()) @ V
        again = preconditioner(rows, 0.1, Session(ThreadExecutor(3, shuffled))) @ V
        np.testing.assert_array_equal(again, products[chunk])
        np.testing.assert_allclose(products[chunk], products[1000], rtol=1e-9, atol=1e-9)


def test_equal_bits_on_a_cluster() -> None:
    rows = rows_of(data(20_000), range(0, 20_000, 1500))
    V = np.random.default_rng(3).standard_normal((20_000, 2))
    with thread_client() as client:
        there = preconditioner(rows, 0.1, Session(ClusterExecutor(client))) @ V
    np.testing.assert_array_equal(there, preconditioner(rows, 0.1, session()) @ V)


def test_the_rows_of_a_factor_are_pure_data() -> None:
    rows = FeatureRows(open_table(data(40), np.arange(40.0), weights=np.full(40, 2.0)), basis_of(data(40), range(5)))
    assert rows.table.targets is None
    assert rows.table.weights is None
    again = pickle.loads(pickle.dumps(rows))
    np.testing.assert_array_equal(again.gram(session()).H, rows.gram(session()).H)
    np.testing.assert_array_equal(rows.to_dask().compute(scheduler="synchronous"), rows.basis.features(data(40)))
    assert rows.gram(session()).count == 40


# ----------------------------------------------------------------------------------------------------- degenerate, bad
def test_one_row_one_function_and_duplicates() -> None:
    one = rows_of(np.ones((1, 2)), [0])
    assert kernel_operator(one, session()) @ np.array([3.0]) == pytest.approx([3.0])
    X = np.repeat(data(20), 4, axis=0)
    rows = rows_of(X, range(0, 80, 4))  # rank(K) = 20 = n
    v = np.random.default_rng(4).standard_normal(80)
    K = naive.gaussian(X, X)
    np.testing.assert_allclose(kernel_operator(rows, session()) @ v, K @ v, atol=1e-9)
    expected = np.linalg.solve(K + 0.2 * np.eye(80), v)
    np.testing.assert_allclose(preconditioner(rows, 0.2, session()) @ v, expected, atol=1e-8)


@pytest.mark.parametrize("rho", [0, -1.0, np.nan, np.inf, "1", None, True])
def test_a_ridge_is_a_number_above_zero(rho: Any) -> None:
    with pytest.raises(ParameterError, match="rho"):
        preconditioner(rows_of(data(9), [0]), rho, session())


def test_a_ridge_that_is_lost_in_rounding_is_refused() -> None:
    X = np.repeat(data(4), 5000, axis=0)
    G = np.hstack([X, X])  # a stored factor of rank 3 in six columns
    with pytest.raises(NumericalError, match=r"rho = 1e-30 .*; give a larger rho$"):
        preconditioner(FeatureRows(open_table(G)), 1e-30, session())


def test_bad_vectors_and_tables() -> None:
    where = session()
    operator = kernel_operator(rows_of(data(9), [0, 1]), where)
    with pytest.raises(ValueError, match=r"(?i)dimension mismatch"):
        operator @ np.ones(8)
    with pytest.raises(DTypeError, match="complex"):
        operator @ (1j * np.ones(9))
    with pytest.raises(NonFiniteDataError, match="row 4"):
        operator @ np.where(np.arange(9) == 4, np.nan, 1.0)
    with pytest.raises(ShapeMismatchError, match=r"\(8, 1\), the table 9 rows"):
        operator.rows.transposed_times(np.ones((8, 1)), where)
    with pytest.raises(ShapeError, match="2 features, the basis points 3"):
        FeatureRows(open_table(data(9, 2)), basis_of(data(9), [0]))
    assert where.records == []
