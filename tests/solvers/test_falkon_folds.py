"""Alpha by a held-out fold without sums of n x n: the errors of dense solves, at every alpha that is tried."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import basis_of, cut_session
from strategies import cuts, few_examples

from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import NumericalError
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import NormalEquations, RidgeSums
from streamkernel.solvers import FalkonFolds, FalkonSystem, alpha_of_sample, functions_of_sample
from streamkernel.solvers.least_squares import falkon_folds
from streamkernel.table import Folds, Table, open_table
from streamkernel.table.row_keys import row_keys

FOLDS = Folds(1, 8, 3)


def one() -> Session:
    return Session(ThreadExecutor(1))


def case(m: int = 700, d: int = 2, n: int = 40, weighted: bool = False) -> tuple[Table, Basis, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 3))
    Y = 5 + np.sin(X @ rng.standard_normal((3, d))) + 0.3 * rng.standard_normal((m, d))
    w = rng.integers(0, 4, m).astype(float) if weighted else None
    return open_table(X, Y, weights=w).with_keys(), basis_of(X, rng.choice(m, n, replace=False), Gaussian(1.5)), w


def folded(table: Table, basis: Basis, session: Session | None = None, **options: Any) -> FalkonFolds:
    centre = np.full(table.n_targets, 4.0)
    sample = open_table(table.read(0, table.n_rows // 2).X)
    return FalkonFolds(
        FalkonSystem(basis, table, session or one(), centre=centre, sample=sample, folds=FOLDS, **options)
    )


def by_hand(table: Table, basis: Basis, alpha: float, intercept: bool = True) -> tuple[Any, Any]:
    """Coefficients without the held-out rows, and the weighted squared errors on these, by dense solves."""
    block = table.read(0, table.n_rows)
    out, w = FOLDS.held_out(row_keys(block.X)), block.row_weights
    G, Y, W = basis.features(block.X[~out]), block.Y[~out], w[~out]
    means = (W @ G / W.sum(), W @ Y / W.sum()) if intercept else (np.zeros(len(basis)), np.zeros(Y.shape[1]))
    Gc, Yc = G - means[0], Y - means[1]
    beta = np.linalg.solve(Gc.T @ (W[:, None] * Gc) + alpha * np.eye(len(basis)), Gc.T @ (W[:, None] * Yc))
    left = block.Y[out] - means[1] - (basis.features(block.X[out]) - means[0]) @ beta
    return beta, w[out] @ left**2


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_error_is_that_of_a_dense_solve(intercept: bool, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(falkon_folds, "TOLERANCE", 1e-11)
    table, basis, _ = case(weighted=weighted)
    system = folded(table, basis, intercept=intercept)
    block = table.read(0, table.n_rows)
    out = FOLDS.held_out(row_keys(block.X))
    choice = system.choose(0.3, 1e-4, 1e3)
    assert choice.rows == out.sum()
    assert len(choice.alphas) >= 3
    for alpha, error in zip(choice.alphas, choice.errors, strict=True):
        _, squares = by_hand(table, basis, float(alpha), intercept)
        assert error == pytest.approx(squares.sum() / block.row_weights[out].sum(), rel=1e-7)
    assert choice.error == choice.errors.min()
    beta, squares = by_hand(table, basis, choice.alpha, intercept)
    (solution,) = choice.solutions
    np.testing.assert_allclose(solution.beta, beta, atol=1e-7 * np.abs(beta).max())
    np.testing.assert_allclose(choice.mse, squares / block.row_weights[out].sum(), rtol=1e-7)
    weights = block.row_weights[out]
    assert choice.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=0.15)
    # No alpha near by is better.
    grid = choice.alpha * np.geomspace(0.1, 10, 9)
    errors = [by_hand(table, basis, float(alpha), intercept)[1].sum() / weights.sum() for alpha in grid]
    assert choice.error <= min(errors) * (1 + 1e-3)


def test_the_tolerance_of_the_search_gives_three_digits() -> None:
    table, basis, _ = case()
    choice = folded(table, basis).choose(0.3, 1e-4, 1e3)
    for alpha, error in zip(choice.alphas, choice.errors, strict=True):
        assert error == pytest.approx(by_hand(table, basis, float(alpha))[1].sum() / choice.rows, rel=1e-3)


def test_errors_are_in_units_of_the_scale() -> None:
    table, basis, _ = case()
    system = FalkonSystem(basis, table, one(), folds=FOLDS)
    scale = np.array([4.0, 0.25])
    choice = FalkonFolds(system, scale=scale).choose(0.3, 1e-4, 1e3)
    assert choice.error == pytest.approx((choice.mse / scale).sum())


@pytest.mark.parametrize("start", [1e-3, 1e3])
def test_a_start_from_afar_ends_at_the_same_alpha(start: float) -> None:
    """Half decades from there, with factors of other alphas on the way."""
    table, basis, _ = case()
    near, far = (folded(table, basis).choose(alpha, 1e-7, 1e5) for alpha in (1.0, start))
    assert far.error == pytest.approx(near.error, rel=2e-3)


def test_its_solution_is_a_start_for_all_rows() -> None:
    table, basis, _ = case()
    system = FalkonSystem(basis, table, one(), folds=FOLDS)
    choice = FalkonFolds(system).choose(1.0, 1e-4, 1e3)
    cold, warm = (system.solve(choice.alpha, start=start) for start in (None, choice.solutions[0].beta))
    np.testing.assert_allclose(warm.coefficients, cold.coefficients, atol=1e-7 * np.abs(cold.coefficients).max())
    np.testing.assert_allclose(warm.residual_square, cold.residual_square, rtol=1e-8)
    assert warm.iterations < cold.iterations
    assert warm.residuals[0].max() < 0.3 < cold.residuals[0].min()
    assert warm.sweeps == warm.iterations + 2


def test_alphas_share_their_sweeps() -> None:
    table, basis, _ = case()
    session = one()
    choice = folded(table, basis, session).choose(0.3, 1e-4, 1e3)
    names = [record.name for record in session.records]
    assert names[0] == "right side of the normal equations"
    assert set(names[1:]) == {"products without held-out rows"}
    assert len(names) - 1 < 6 * len(choice.alphas)


M = 100  # a block has one of them, too, in some forty sweeps


@functools.cache
def in_one_piece(weighted: bool) -> tuple[Table, Basis, Any]:
    table, basis, _ = case(m=M, n=8, weighted=weighted)
    return table, basis, folded(table, basis).choose(1.0, 1e-3, 1e3)


@few_examples(0.2)
@given(data=st.data(), weighted=st.booleans())
def test_any_chunking_is_one_chunk(data: Any, weighted: bool) -> None:
    table, basis, whole = in_one_piece(weighted)
    session = cut_session(data.draw(cuts(M)), data.draw(st.sampled_from([1, 7, M])))
    cut = folded(table, basis, session).choose(1.0, 1e-3, 1e3)
    np.testing.assert_allclose(cut.alphas, whole.alphas, rtol=1e-6)
    np.testing.assert_allclose(cut.errors, whole.errors, rtol=1e-8)


def test_equal_bits_in_any_order() -> None:
    table, basis, _ = case(m=20_000, n=12)
    found = [
        folded(table, basis, Session(executor)).choose(1.0, 1e-3, 1e3)
        for executor in (ThreadExecutor(1), ThreadExecutor(3, lambda leaves: leaves[::-1]))
    ]
    np.testing.assert_array_equal(found[0].errors, found[1].errors)
    np.testing.assert_array_equal(found[0].solutions[0].beta, found[1].solutions[0].beta)


def test_an_alpha_that_takes_too_many_iterations_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(falkon_folds, "MOST", 1)
    table, basis, _ = case()
    system = FalkonFolds(FalkonSystem(basis, table, one(), folds=FOLDS))
    with pytest.raises(NumericalError, match=r"no alpha from .* could be solved for"):
        system.choose(1e-4, 1e-5, 1e-3)


def test_what_is_lacking() -> None:
    X = np.repeat(np.random.default_rng(0).standard_normal((40, 2)), 10, axis=0)
    table = open_table(X, X[:, 0]).with_keys()
    assert (
        "distinct rows are held out"
        in FalkonFolds(FalkonSystem(basis_of(X, [0, 10, 20]), table, one(), folds=FOLDS)).lacking
    )


# ---------------------------------------------------------------------------------------------------- alpha of a sample
def sums_of(table: Table, basis: Basis, rows: Any) -> RidgeSums:
    block = table.read(0, table.n_rows)
    part = open_table(block.X[rows], block.Y[rows])
    return one().sweep(NormalEquations(basis, np.full(table.n_targets, 4.0)), part, "sums")


def test_alpha_of_a_sample_is_that_of_its_leading_functions() -> None:
    table, basis, _ = case(m=3000, n=300)
    out = FOLDS.held_out(row_keys(table.read(0, 3000).X))
    size = functions_of_sample(300)
    assert size == 250
    trained, held = sums_of(table, basis, ~out), sums_of(table, basis.leading(size), out)
    found = alpha_of_sample(trained, held, float(out.sum()), 2.0)
    leading = basis.leading(size)
    grid = found.alpha * 10.0 ** np.arange(-2, 2.1, 0.5)
    errors = [by_hand(table, leading, float(alpha))[1].sum() for alpha in grid]
    assert errors[4] <= min(errors) * (1 + 1e-4)
    assert found.low < found.alpha < found.high
    # The factor of the leading functions is a part of that of all.
    np.testing.assert_allclose(leading.L @ leading.L.T, leading.gram(), atol=1e-12)


@pytest.mark.parametrize("which", ["none are", "too few are"])
def test_without_held_out_rows_it_is_by_gcv(which: str) -> None:
    table, basis, _ = case()
    trained = sums_of(table, basis, np.arange(600))
    held = None if which == "none are" else sums_of(table, basis, np.arange(600, 610))
    found = alpha_of_sample(trained, held, 10.0, 1.0)
    assert math.isfinite(found.alpha)
    assert found.low < found.alpha < found.high
