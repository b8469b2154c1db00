"""Ridge regression from sums, against the minimiser, its hat matrix and scikit-learn."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import FLOAT64, basis_of, blocks
from sklearn.kernel_ridge import KernelRidge as Reference
from strategies import seeds

from streamkernel.basis import Basis
from streamkernel.errors import NumericalError, SingularKernelError
from streamkernel.kernels import Gaussian, Laplacian
from streamkernel.linalg import RidgePath
from streamkernel.reductions.sums import NormalEquations
from streamkernel.solvers import RidgeSystem


def system_of(
    X: Any, Y: Any, basis: Basis, *, weights: Any = None, centre: Any = None, leading: int | None = None, **options: Any
) -> RidgeSystem:
    centre = np.zeros(Y.shape[1]) if centre is None else centre
    reduction = NormalEquations(basis, centre, leading)
    sums = reduction.finalize(reduction.map_block(next(blocks(X, Y, [len(X)], weights))))
    return RidgeSystem(basis, sums, **options)


def case(seed: int = 0, m: int = 90, d: int = 2) -> tuple[Any, Any, Basis, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    Y = 5 + np.sin(X @ rng.standard_normal((3, d))) + 0.1 * rng.standard_normal((m, d))
    basis = basis_of(X, rng.choice(m, 12, replace=False), Gaussian(1.5))
    return X, Y, basis, naive.gaussian(X, basis.points, 1.5)


@pytest.mark.parametrize("leading", [0, 3, None])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 0.1, 30.0])
def test_solution_is_the_minimiser(alpha: float, intercept: bool, weighted: bool, leading: int | None) -> None:
    X, Y, basis, K = case()
    w = np.random.default_rng(1).uniform(0.2, 3, len(X)) if weighted else None
    system = system_of(X, Y, basis, weights=w, intercept=intercept, leading=leading)
    found = system.solve(alpha)
    expected = naive.reduced_ridge(K, basis.gram(), Y, alpha, intercept=intercept, weights=w)
    np.testing.assert_allclose(found.coefficients, expected.alpha, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(K @ found.coefficients + found.intercept, expected.fitted, rtol=1e-8)
    np.testing.assert_allclose(found.residual_square, expected.rss, rtol=1e-7)
    # tr H of the dense hat matrix; GCV = m RSS / (m - tr H)^2, summed over the targets.
    assert found.effective_df == pytest.approx(expected.edf, rel=1e-9)
    assert found.gcv == pytest.approx(expected.gcv.sum(), rel=1e-7)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_constant_taken_off_the_targets_changes_nothing(intercept: bool) -> None:
    X, Y, basis, _ = case()
    plain = system_of(X, Y, basis, intercept=intercept).solve(0.3)
    centred = system_of(X, Y, basis, centre=np.array([4.0, 6.0]), intercept=intercept).solve(0.3)
    np.testing.assert_allclose(centred.coefficients, plain.coefficients, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(centred.intercept, plain.intercept, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(centred.residual_square, plain.residual_square, rtol=1e-8)


def test_a_large_offset_of_the_targets_costs_no_digits() -> None:
    X, Y, basis, _ = case()
    far = system_of(X, Y + 1e8, basis, centre=Y.mean(axis=0) + 1e8).solve(0.3)
    near = system_of(X, Y, basis, centre=Y.mean(axis=0)).solve(0.3)
    np.testing.assert_allclose(far.coefficients, near.coefficients, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(far.intercept - 1e8, near.intercept, rtol=1e-6)


@given(seed=seeds, power=st.floats(-6, 3))
def test_gradient_of_the_objective_is_zero(seed: int, power: float) -> None:
    """K'(K a + b - Y) + alpha K_ZZ a = 0 and the residuals sum to 0 (Smola & Schoelkopf 2000, eq. 7)."""
    X, Y, basis, K = case(seed % 1000)
    alpha = 10**power
    found = system_of(X, Y, basis).solve(alpha)
    left = K @ found.coefficients + found.intercept - Y
    gradient = K.T @ left + alpha * basis.gram() @ found.coefficients
    np.testing.assert_allclose(gradient, 0, atol=1e-8 * np.abs(K.T @ Y).max())
    np.testing.assert_allclose(left.sum(axis=0), 0, atol=1e-8 * len(X))


def test_residual_path_is_exact_for_every_leading_part() -> None:
    X = naive.card().X
    picks = [17, 4, 27, 33, 29, 20]
    path = system_of(X, naive.card().y[:, None], basis_of(X, picks)).residual_path
    expected = [naive.residual_trace(naive.card().K, picks[:n]) for n in range(7)]
    np.testing.assert_allclose(path, expected, rtol=1e-10)
    np.testing.assert_allclose(path[1:], [31.8666, 25.0118, 18.3675, 14.5094, 11.0949, 8.62676], rtol=1e-5)


def test_reduced_risk_of_the_card() -> None:
    """ALGORITHMS 2.8: R_n = (yy - g'beta) / 2m for rho = .1 in SGMA order."""
    card, risks = naive.card(), []
    for n in range(1, 7):
        basis = basis_of(card.X, [17, 4, 27, 33, 29, 20][:n])
        system = system_of(card.X, card.y[:, None], basis, intercept=False)
        beta = system.path.beta(0.1)
        g = basis.features(card.X).T @ card.y
        risks.append((card.y @ card.y - g @ beta[:, 0]) / 80)
    np.testing.assert_allclose(risks, [0.463582, 0.463464, 0.110619, 0.0952614, 0.0236048, 0.0223884], rtol=2e-5)


# --------------------------------------------------------------------------------------------------- all rows as basis
@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_all_rows_as_basis_are_scikit_learns_kernel_ridge(alpha: float) -> None:
    X, Y, _, _ = case(m=60)
    basis = basis_of(X, range(60), Gaussian(0.8))
    found = system_of(X, Y, basis, intercept=False).solve(alpha)
    theirs = Reference(alpha=alpha, kernel="rbf", gamma=1 / (2 * 0.8**2)).fit(X, Y)
    np.testing.assert_allclose(found.coefficients, theirs.dual_coef_, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(found.intercept, 0.0)


def test_all_rows_as_basis_with_an_intercept() -> None:
    X, Y, _, _ = case(m=60)
    basis = basis_of(X, range(60), Gaussian(0.8))
    found = system_of(X, Y, basis).solve(0.2)
    dual, b = naive.kernel_ridge(naive.gaussian(X, X, 0.8), Y, 0.2, intercept=True)
    np.testing.assert_allclose(found.coefficients, dual, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.intercept, b, rtol=1e-8)


# ------------------------------------------------------------------------------------------------------ choosing alpha
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scaled", [False, True])
def test_alpha_has_the_least_gcv_or_the_largest_evidence(scaled: bool, seed: int) -> None:
    """The larger of the two, both from dense matrices: GCV with c = 1.4, the evidence at its best noise."""
    X, Y, basis, K = case(seed)
    m = len(Y)
    units = Y.var(axis=0) if scaled else np.ones(2)
    system = system_of(X, Y, basis, scale=units if scaled else None)
    centred = Y - Y.mean(axis=0)
    G = naive.whitened_features(K, basis.gram())
    G = G - G.mean(axis=0)

    def gcv(alpha: float) -> float:
        fit = naive.reduced_ridge(K, basis.gram(), Y, alpha, intercept=True)
        return float((fit.rss / units).sum() / (m - 1.4 * fit.edf) ** 2)

    def evidence(alpha: float) -> float:
        C = G @ G.T / alpha + np.eye(m)
        quadratic = (centred * np.linalg.solve(C, centred)).sum(axis=0)
        return float(-0.5 * m * np.log(quadratic / m).sum() - np.linalg.slogdet(C)[1])

    alphas = np.geomspace(1e-6, 1e3, 300)
    by_gcv = alphas[np.argmin([gcv(alpha) for alpha in alphas])]
    by_evidence = alphas[np.argmax([evidence(alpha) for alpha in alphas])]
    chosen = system.choose_alpha()
    assert chosen == pytest.approx(max(by_gcv, by_evidence), rel=0.05)
    # What is reported is the plain score, c = 1.
    plain = naive.reduced_ridge(K, basis.gram(), Y, chosen, intercept=True)
    assert system.solve(chosen).gcv == pytest.approx(float((plain.gcv / units).sum()), rel=1e-6)


def test_pure_noise_is_shrunk_away() -> None:
    X, _, basis, _ = case(m=400)
    noise = np.random.default_rng(0).standard_normal((400, 1))
    system = system_of(X, noise, basis)
    assert system.solve(system.choose_alpha()).effective_df < 6


def test_constant_targets_give_a_constant() -> None:
    X, _, basis, K = case()
    system = system_of(X, np.full((90, 1), 7.0), basis)
    found = system.solve(system.choose_alpha())
    np.testing.assert_allclose(K @ found.coefficients + found.intercept, 7.0, rtol=1e-9)


def test_as_many_functions_as_rows_do_not_divide_by_zero() -> None:
    X, Y, _, _ = case(m=20)
    system = system_of(X, Y, basis_of(X, range(20), Gaussian(0.5)))
    assert np.isfinite(system.choose_alpha())
    assert system.path.gcv(0.0) == np.inf or system.path.gcv(0.0) >= 0


# ------------------------------------------------------------------------------------------------------------- failure
def test_alpha_zero_is_least_squares_where_that_is_defined() -> None:
    X, Y, basis, K = case()
    found = system_of(X, Y, basis, intercept=False).solve(0.0)
    expected = np.linalg.lstsq(K, Y, rcond=None)[0]
    np.testing.assert_allclose(K @ found.coefficients, K @ expected, rtol=1e-7)


def test_alpha_zero_with_singular_sums() -> None:
    """More functions than rows that tell them apart."""
    X = np.random.default_rng(0).standard_normal((8, 2))
    basis = basis_of(X, range(8), Laplacian(1.0))
    rows = np.repeat(X[:3], 5, axis=0)
    system = system_of(rows, rows[:, :1], basis, intercept=False)
    with pytest.raises(SingularKernelError, match="give alpha > 0"):
        system.solve(0.0)
    assert np.isfinite(system.solve(1e-3).coefficients).all()


def test_an_empty_basis_predicts_the_mean() -> None:
    X, Y, _, _ = case()
    found = system_of(X, Y, Basis.empty(Gaussian(1.0), 3, FLOAT64)).solve(1.0)
    np.testing.assert_allclose(found.intercept, Y.mean(axis=0))
    assert found.coefficients.shape == (0, 2)
    assert found.effective_df == 1.0


def test_sums_that_are_not_finite_are_named() -> None:
    X, Y, basis, _ = case()
    Y[3, 1] = np.nan
    with pytest.raises(NumericalError, match="the sum g"):
        system_of(X, Y, basis)


# ------------------------------------------------------------------------------------------------------ the whole path
@given(seed=seeds, n=st.integers(1, 12), rank=st.integers(1, 12), power=st.floats(-4, 4))
def test_path_against_dense_algebra(seed: int, n: int, rank: int, power: float) -> None:
    rng = np.random.default_rng(seed)
    rank, alpha = min(n, rank), 10**power
    G, Y = rng.standard_normal((30, rank)) @ rng.standard_normal((rank, n)), rng.standard_normal((30, 2))
    path = RidgePath.of(G.T @ G, G.T @ Y, (Y**2).sum(axis=0), 30)
    hat = G @ np.linalg.solve(G.T @ G + alpha * np.eye(n), G.T)
    np.testing.assert_allclose(G @ path.beta(alpha), hat @ Y, atol=1e-6)
    assert path.effective_df(alpha) == pytest.approx(np.trace(hat), rel=1e-6)
    np.testing.assert_allclose(path.residual_square(alpha), ((Y - hat @ Y) ** 2).sum(axis=0), rtol=1e-6, atol=1e-8)
    assert (np.diff(path.grid()) > 0).all()
