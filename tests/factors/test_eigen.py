"""Eigenvalues and eigenvectors of K~, plain and centred, against the dense ones."""

from __future__ import annotations

from typing import Any

import data_sets
import naive
import numpy as np
import pytest
from factored import factors, rows_of, session, stored
from hypothesis import given
from hypothesis import strategies as st
from problems import basis_of

from streamkernel.errors import NumericalError, ParameterError, ResourceLimitError
from streamkernel.factors import FactorEigen, FeatureRows, pca_residual_traces
from streamkernel.kernels import Gaussian, Laplacian, Linear
from streamkernel.reductions import Collect
from streamkernel.reductions.sums import FeatureTimes
from streamkernel.table import open_table

CARD = naive.card()
SGMA = [17, 4, 27, 33, 29, 20]


def data(m: int = 200, p: int = 3) -> Any:
    return np.random.default_rng(0).standard_normal((m, p))


def eigen(rows: FeatureRows, **options: Any) -> FactorEigen:
    return FactorEigen.of(rows.features, rows.gram(session()), **options)


def values_of(work: FeatureTimes, rows: FeatureRows) -> Any:
    return session().sweep(Collect(work, work.name, rows.shape[0]), rows.table, work.name)


@given(factors(), st.booleans())
def test_eigenvectors_are_those_of_the_dense_matrix(case: Any, centred: bool) -> None:
    rows, K, chosen = case
    dense = naive.nystroem(K, chosen)
    dense = naive.centred(dense) if centred else dense
    expected = np.sort(np.linalg.eigvalsh(dense))[::-1]
    try:
        found = eigen(rows, centred=centred)
    except NumericalError:
        assert centred
        assert expected[0] < 1e-9 * len(K)
        return
    r = len(found.values)
    np.testing.assert_allclose(found.values, expected[:r], rtol=1e-7, atol=1e-10 * len(K))
    assert (expected[r:] < 1e-9 * len(K)).all()
    U, scores = values_of(found.eigenvectors(), rows), values_of(found.scores(), rows)
    np.testing.assert_allclose(dense @ U, U * found.values, atol=1e-7 * len(K))
    np.testing.assert_allclose(scores @ scores.T, dense, atol=1e-7)
    # The rounding of H, a share of its largest eigenvalue, is divided by small ones.
    lifted = len(K) * np.finfo(float).eps * expected[0] / np.sqrt(np.outer(found.values, found.values))
    np.testing.assert_array_less(abs(U.T @ U - np.eye(r)), 1e-10 + 1000 * lifted)
    np.testing.assert_allclose(scores, U * np.sqrt(found.values), atol=1e-9)
    if centred:
        np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=1e-9)


def test_traces_are_exact_and_above_the_optimum() -> None:
    rows = rows_of(CARD.X, SGMA)
    optimum = pca_residual_traces(rows.table, Gaussian(1.0))
    np.testing.assert_allclose(optimum[1:7], [30.6156, 23.1394, 16.0181, 11.8993, 8.68757, 6.41652], rtol=6e-6)
    np.testing.assert_allclose(optimum[1:7], naive.pca_traces(CARD.K, 6), rtol=1e-12)
    assert optimum[0] == pytest.approx(40.0)
    values = np.sort(np.linalg.eigvalsh(naive.nystroem(CARD.K, SGMA)))[::-1]
    for r in range(1, 7):
        found = eigen(rows, count=r).residual_trace
        assert found == pytest.approx(40.0 - values[:r].sum(), rel=1e-12)
        assert found >= optimum[r]
    assert eigen(rows).residual_trace == pytest.approx(naive.residual_trace(CARD.K, SGMA), rel=1e-12)


def test_risks_in_the_best_subspaces() -> None:
    """ALGORITHMS 2.8, rho = .1: ridge on the first n scores, whose squares are the eigenvalues."""
    rows = rows_of(CARD.X, range(40))
    for n, risk in enumerate([0.534277, 0.529045, 0.0595116, 0.0423677, 0.0339397, 0.0325806], start=1):
        found = eigen(rows, count=n)
        explained = (values_of(found.scores(), rows).T @ CARD.y) ** 2 / (found.values + 0.1)
        np.testing.assert_allclose((CARD.y @ CARD.y - explained.sum()) / 80, risk, rtol=6e-6)


@given(factors())
def test_the_centred_residual_is_bounded(case: Any) -> None:
    """tr C K C - sum w_j <= tr(K - K~) + tr C K~ C - sum w_j."""
    rows, K, _ = case
    try:
        found = eigen(rows, centred=True, count=2)
    except NumericalError:
        return
    assert found.residual_trace is not None
    assert np.trace(naive.centred(K)) - found.values.sum() <= found.residual_trace + 1e-9 * len(K)


def test_all_rows_as_basis_give_kernel_pca() -> None:
    X = data(60)
    kernel = Laplacian(2.0)
    found = eigen(rows_of(X, range(60), kernel), count=5, centred=True)
    values, vectors = np.linalg.eigh(naive.centred(kernel(X)))
    np.testing.assert_allclose(found.values, values[::-1][:5], rtol=1e-10)
    U = values_of(found.eigenvectors(), rows_of(X, range(60), kernel))
    np.testing.assert_allclose(abs(U), abs(vectors[:, ::-1][:, :5]), atol=1e-9)
    # The sign: the largest component, here among all rows, is positive.
    assert (U[abs(U).argmax(axis=0), np.arange(5)] > 0).all()


def test_a_linear_kernel_is_principal_component_analysis() -> None:
    X = data(500, 4) * [3.0, 2.0, 1.0, 0.5] + [10.0, -5.0, 0.0, 2.0]
    rows = rows_of(X, range(4), Linear())
    found = eigen(rows, centred=True)
    _, s, axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(found.values, s**2, rtol=1e-9)
    np.testing.assert_allclose(abs(values_of(found.scores(), rows)), abs((X - X.mean(axis=0)) @ axes.T), atol=1e-8)


def test_a_stored_factor_has_the_same_values_and_vectors() -> None:
    rows = rows_of(data(), range(0, 200, 8), Laplacian(2.0))
    one, other = eigen(rows, centred=True, count=6), eigen(stored(rows), centred=True, count=6)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-11)
    assert other.residual_trace is None
    U, V = values_of(one.eigenvectors(), rows), values_of(other.eigenvectors(), stored(rows))
    np.testing.assert_allclose(abs(U), abs(V), atol=1e-8)
    assert (other.directions[abs(other.directions).argmax(axis=0), np.arange(6)] > 0).all()


def test_rank_is_found_and_nothing_is_refused() -> None:
    X = np.repeat(data(7), 30, axis=0)
    rows = rows_of(X, range(0, 210, 30))
    assert len(eigen(rows).values) == 7
    assert len(eigen(rows, centred=True).values) == 6
    assert len(eigen(rows, count=50).values) == 7
    for equal in (np.ones((40, 2)), np.ones((1, 3))):
        assert eigen(rows_of(equal, [0])).values == pytest.approx([len(equal)])
        with pytest.raises(NumericalError, match="rows are equal"):
            eigen(rows_of(equal, [0]), centred=True)
    with pytest.raises(NumericalError, match="K~ is zero"):
        eigen(FeatureRows(open_table(np.zeros((5, 2)))))


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2"])
def test_counts(count: Any) -> None:
    with pytest.raises(ParameterError, match="count"):
        eigen(rows_of(data(20), [0, 1]), count=count)


def test_the_exact_baseline_is_for_small_tables() -> None:
    X = data(50)
    assert len(pca_residual_traces(open_table(X), Gaussian(1.0), 3)) == 4
    assert (np.diff(pca_residual_traces(open_table(X), Gaussian(1.0))) <= 0).all()
    with pytest.raises(ResourceLimitError, match=r"6000 rows.*at most 5000"):
        pca_residual_traces(open_table(np.zeros((6000, 1))), Gaussian(1.0))


def test_abalone_has_few_directions() -> None:
    """150 greedy rows leave within half as much again of what the best 150 directions leave (Figure 3's statement)."""
    real = data_sets.load("abalone")
    if real is None:
        pytest.skip("abalone is not in ../shared/data")
    X = np.ascontiguousarray(real.X[:1000], dtype=np.float64)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kernel = Gaussian(2.0)
    picks = naive.incomplete_cholesky(kernel(X), 150)[0].picks
    rows = FeatureRows(open_table(X), basis_of(X, picks, kernel))
    found = eigen(rows, count=50)
    optimum = pca_residual_traces(rows.table, kernel)
    np.testing.assert_allclose(found.values[:5], -np.diff(optimum)[:5], rtol=2e-3)
    assert optimum[50] <= found.residual_trace <= 1.5 * optimum[50]
