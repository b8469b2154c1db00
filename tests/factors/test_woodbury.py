"""Nystroem regression with Woodbury's identity: the published weights, and the two predictors."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from factored import factors, rows_of, session, stored
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.errors import NonFiniteDataError, ParameterError, ShapeMismatchError
from streamkernel.factors import nystroem_regression

CARD = naive.card()
SGMA = [17, 4, 27, 33, 29, 20]
Q = np.array([[0.3, -0.2], [1.1, 0.4]])


def test_the_numbers_of_the_card() -> None:
    where = session()
    rows = rows_of(CARD.X, SGMA)
    found = nystroem_regression(rows, CARD.y, 0.1, where)
    np.testing.assert_allclose(found.weights[:3], [3.64333, 2.25333, 0.076603], rtol=2e-6)
    np.testing.assert_allclose(found.weights, naive.woodbury_weights(CARD.K, SGMA, CARD.y, 0.1), atol=1e-10)
    assert len(where.records) == 3
    # Through K~ it is the subset of regressors, through K it is another, unstable function.
    np.testing.assert_allclose(found.predictions().values(Q)[:, 0], [0.0422691, 0.900645], rtol=2e-6)
    np.testing.assert_allclose(found.full_kernel(Q, where), [0.945903, 0.0014264], rtol=5e-6)
    assert len(where.records) == 4
    ridge = naive.reduced_ridge(CARD.K[:, SGMA], CARD.K[np.ix_(SGMA, SGMA)], CARD.y, 0.1)
    np.testing.assert_allclose(found.predictions().coefficients, ridge.alpha, rtol=1e-9)


@given(factors(), st.integers(1, 3), st.sampled_from([0.1, 1.0, 10.0]))
def test_weights_and_predictors_are_the_dense_ones(case: Any, d: int, noise: float) -> None:
    rows, K, chosen = case
    m = len(K)
    dense = naive.nystroem(K, chosen)
    Y = np.random.default_rng(d).standard_normal((m, d))
    where = session()
    found = nystroem_regression(rows, Y, noise, where)
    weights = np.linalg.solve(dense + noise * np.eye(m), Y)
    np.testing.assert_allclose(found.weights, weights, atol=1e-7)
    X = rows.table.read(0, m).X
    np.testing.assert_allclose(found.predictions().values(X), dense @ weights, atol=1e-7)
    np.testing.assert_allclose(found.full_kernel(X, where), K @ weights, atol=1e-6)
    again = nystroem_regression(rows, Y[:, 0], noise, where, rows.gram(where))
    np.testing.assert_array_equal(again.weights.shape, (m,))
    np.testing.assert_allclose(again.weights, found.weights[:, 0], atol=1e-8)
    assert len(where.records) == 3 + 1 + 1 + 2


def test_a_stored_factor_has_weights_and_no_predictor() -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    rows = rows_of(X, range(0, 60, 5))
    found = nystroem_regression(stored(rows), X[:, 0], 0.5, session())
    np.testing.assert_allclose(found.weights, nystroem_regression(rows, X[:, 0], 0.5, session()).weights, atol=1e-10)
    with pytest.raises(ParameterError, match="no functions to predict with"):
        found.predictions()
    with pytest.raises(ParameterError, match="no kernel to predict with"):
        found.full_kernel(X, session())


def test_what_is_refused() -> None:
    rows = rows_of(CARD.X, SGMA)
    where = session()
    with pytest.raises(ParameterError, match="rho"):
        nystroem_regression(rows, CARD.y, 0.0, where)
    with pytest.raises(ShapeMismatchError):
        nystroem_regression(rows, CARD.y[:39], 1.0, where)
    with pytest.raises(NonFiniteDataError):
        nystroem_regression(rows, np.full(40, np.nan), 1.0, where)
    assert where.records == []
