"""Projected Bayes regression, against its formula in the eigenfunctions themselves."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import basis_of, blocks
from strategies import seeds

from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import NormalEquations
from streamkernel.solvers import ProjectedBayes, RidgeSystem

CARD = naive.card()
SGMA = [17, 4, 27, 33, 29, 20]


def sums_of(X: Any, Y: Any, basis: Any, centre: Any = None) -> Any:
    work = NormalEquations(basis, np.zeros(Y.shape[1]) if centre is None else centre)
    return work.finalize(work.map_block(next(blocks(X, Y, [len(X)]))))


def projected(count: int | None = None) -> tuple[Any, ProjectedBayes]:
    basis, Y = basis_of(CARD.X, SGMA), CARD.y[:, None]
    sums = sums_of(CARD.X, Y, basis)
    return sums, ProjectedBayes(basis, sums, count)


def test_the_forms_of_the_card() -> None:
    """rss 2.13388 of the finite form and 3.20966 of the asymptotic one, 4 of 6 eigenfunctions, s2 = .1."""
    _, model = projected(4)
    Phi, finite, limit = naive.projected_bayes(CARD.K, SGMA, CARD.y, 0.1, 4)
    for found, b, rss in ((model.solve(0.1), finite, 2.13388), (model.asymptotic(0.1), limit, 3.20966)):
        fitted = CARD.K[:, SGMA] @ found.coefficients
        np.testing.assert_allclose(fitted, Phi @ b, atol=1e-10)
        assert found.residual_square[0] == pytest.approx(rss, rel=3e-6)
        assert ((CARD.y[:, None] - fitted) ** 2).sum() == pytest.approx(rss, rel=3e-6)
        # An eigenvector's sign is nobody's.
        np.testing.assert_allclose(np.abs(found.b), np.abs(b), atol=1e-10)
    np.testing.assert_allclose(model.eigenvalues, np.linalg.eigvalsh(CARD.K[np.ix_(SGMA, SGMA)])[:1:-1] / 6)


def test_all_eigenfunctions_are_the_subset_of_regressors() -> None:
    sums, model = projected()
    found = model.solve(0.1)
    ridge = RidgeSystem(basis_of(CARD.X, SGMA), sums, intercept=False).solve(0.1)
    np.testing.assert_allclose(found.coefficients, ridge.coefficients, rtol=1e-9)
    np.testing.assert_allclose(found.residual_square, ridge.residual_square, rtol=1e-9)
    assert found.shares.sum() == pytest.approx(ridge.effective_df, rel=1e-9)


@given(seed=seeds, count=st.integers(1, 6), noise=st.floats(0.01, 10), signal=st.floats(0.1, 10), d=st.integers(1, 3))
def test_posterior_of_the_weights(seed: int, count: int, noise: float, signal: float, d: int) -> None:
    """b ~ N(0, s diag lambda) and y = Phi b + noise: mean and variance by the dense formulas."""
    rng = np.random.default_rng(seed)
    X, chosen = 2 * rng.standard_normal((40, 2)), list(range(0, 40, 6))
    Y, kernel = rng.standard_normal((40, d)), Gaussian(1.0)
    basis, K = basis_of(X, chosen), kernel(X)
    model = ProjectedBayes(basis, sums_of(X, Y, basis), count)
    found = model.solve(noise, signal)
    Phi, b, limit = naive.projected_bayes(K, chosen, Y, noise / signal, count)
    np.testing.assert_allclose(K[:, chosen] @ found.coefficients, Phi @ b, atol=1e-7)
    half = model.asymptotic(noise, signal)
    np.testing.assert_allclose(K[:, chosen] @ half.coefficients, Phi @ limit, atol=1e-7)
    prior = signal * model.eigenvalues
    covariance = np.linalg.inv(np.diag(1 / prior) + Phi.T @ Phi / noise)
    # What the eigenfunctions leave of the prior stays as it was.
    left = signal * np.ones(40) - np.einsum("ij,j,ij->i", Phi, prior, Phi)
    expected = left + np.einsum("ij,jk,ik->i", Phi, covariance, Phi)
    seen = (basis.features(X) @ found.rotation) ** 2 @ found.shares
    np.testing.assert_allclose(signal * (1.0 - seen), expected, atol=1e-7)


def test_targets_far_from_zero_are_those_of_the_centre() -> None:
    basis, Y = basis_of(CARD.X, SGMA), CARD.y[:, None] + 100.0
    found = ProjectedBayes(basis, sums_of(CARD.X, Y, basis, np.array([100.0])), 4).solve(0.1)
    plain = projected(4)[1].solve(0.1)
    np.testing.assert_allclose(found.coefficients, plain.coefficients, rtol=1e-8)
    assert found.intercept == [100.0]


def test_a_finite_sum_is_nearer_the_rows_than_its_limit_and_equals_it_for_orthogonal_features() -> None:
    """Phi'Phi = m I where the rows are the basis points, each as often."""
    X = np.repeat(2 * np.random.default_rng(0).standard_normal((7, 2)), 5, axis=0)
    Y = np.random.default_rng(1).standard_normal((35, 1))
    basis = basis_of(X, range(0, 35, 5))
    model = ProjectedBayes(basis, sums_of(X, Y, basis))
    np.testing.assert_allclose(model.solve(0.3).coefficients, model.asymptotic(0.3).coefficients, rtol=1e-8)


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="count = 7 eigenfunctions of a basis of rank 6"):
        projected(7)
    for noise, signal in ((0.0, 1.0), (1.0, -1.0), (np.nan, 1.0)):
        with pytest.raises(ParameterError):
            projected()[1].solve(noise, signal)
