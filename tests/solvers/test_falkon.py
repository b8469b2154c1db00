"""Conjugate gradients on the reduced system: the direct solution, and Falkon's own matrices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import data_sets
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import FLOAT64, basis_of, cut_session, zarr_of_chunks
from strategies import cuts, few_examples, seeds
from thread_clients import thread_client

from streamkernel.basis import Basis
from streamkernel.engine import Machine, Session, TableShape, ThreadExecutor, make_plan
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.errors import NumericalError, ParameterError
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import NormalEquations
from streamkernel.solvers import FalkonSystem, RidgeSystem, choose_solver, falkon_steps, rows_for_search, sampled_rows
from streamkernel.table import Table, open_table

CARD = naive.card()
SGMA = [17, 4, 27, 33, 29, 20]


def one() -> Session:
    return Session(ThreadExecutor(1))


def case(seed: int = 0, m: int = 400, d: int = 2, n: int = 20, weighted: bool = False) -> tuple[Table, Basis]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    Y = 5 + np.sin(X @ rng.standard_normal((3, d))) + 0.1 * rng.standard_normal((m, d))
    table = open_table(X, Y, weights=rng.uniform(0.2, 3, m) if weighted else None)
    return table, basis_of(X, rng.choice(m, n, replace=False), Gaussian(1.5))


def direct(table: Table, basis: Basis, alpha: float, centre: Any = None, **options: Any) -> Any:
    centre = np.zeros(table.n_targets) if centre is None else centre
    sums = one().sweep(NormalEquations(basis, centre), table, "sums")
    return RidgeSystem(basis, sums, **options).solve(alpha)


# ----------------------------------------------------------------------------------------------------- printed numbers
def test_coefficients_of_the_card() -> None:
    """ALGORITHMS 12.3: lambda = 1e-3, the first six SGMA picks."""
    table, basis = open_table(CARD.X, CARD.y), basis_of(CARD.X, SGMA)
    found = FalkonSystem(basis, table, one(), intercept=False).solve(1e-3 * 40, tol=1e-13)
    expected = [-0.558346, -0.0781209, 1.92796, 0.346344, -1.54286, 0.254513]
    np.testing.assert_allclose(found.coefficients[:, 0], expected, rtol=4e-6)
    K_mI, K_II = CARD.K[:, SGMA], CARD.K[np.ix_(SGMA, SGMA)]
    _, _, alpha = naive.falkon_system(K_mI, K_II, CARD.y, 1e-3)
    np.testing.assert_allclose(found.coefficients, alpha, rtol=1e-11)
    # It solves exactly eq. (7) with rho = lambda m.
    np.testing.assert_allclose(alpha, naive.reduced_ridge(K_mI, K_II, CARD.y, 0.04).alpha, rtol=1e-10)
    assert found.intercept == 0.0
    assert found.iterations <= 6


def test_the_condition_of_the_card() -> None:
    """2.56232 preconditioned, 13.0396 not: P^-1 A has the eigenvalues of Falkon's W."""
    basis = basis_of(CARD.X, SGMA)
    system = FalkonSystem(basis, open_table(CARD.X, CARD.y), one(), intercept=False)
    G = basis.features(CARD.X)
    A, factor = G.T @ G + 0.04 * np.eye(6), system.preconditioner(0.04)
    np.testing.assert_allclose(system.product(np.eye(6)[:, :1], 0.04)[:, 0], A[:, 0], rtol=1e-11)
    W, _, _ = naive.falkon_system(CARD.K[:, SGMA], CARD.K[np.ix_(SGMA, SGMA)], CARD.y, 1e-3)
    values = np.linalg.eigvals(np.linalg.solve(factor @ factor.T, A)).real
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(W), rtol=1e-9)
    raw = CARD.K[SGMA] @ CARD.K[:, SGMA] + 0.04 * CARD.K[np.ix_(SGMA, SGMA)]
    np.testing.assert_allclose([np.linalg.cond(W), np.linalg.cond(raw)], [2.56232, 13.0396], rtol=3e-6)
    # Whitening, which is half of the preconditioner, is half of what it does.
    assert 2.56232 < np.linalg.cond(A) < 13.0396


# ---------------------------------------------------------------------------------------------------------- the minimum
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 30.0])
def test_the_solution_is_that_of_the_direct_solve(alpha: float, intercept: bool, weighted: bool) -> None:
    table, basis = case(weighted=weighted)
    centre = np.array([4.0, 6.0])
    expected = direct(table, basis, alpha, centre, intercept=intercept)
    system = FalkonSystem(basis, table, one(), centre=centre, intercept=intercept)
    found = system.solve(alpha)
    assert found.converged
    X = table.read(0, table.n_rows).X
    values = [basis.block(X) @ which.coefficients + which.intercept for which in (found, expected)]
    np.testing.assert_allclose(*values, rtol=1e-8, atol=1e-8)
    size = np.abs(expected.coefficients).max()
    np.testing.assert_allclose(found.coefficients, expected.coefficients, atol=1e-8 * size)
    np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.residual_square, expected.residual_square, rtol=1e-8)


@given(seed=seeds, power=st.floats(-1, 3), d=st.integers(1, 3), n=st.integers(1, 15))
def test_the_residual_falls_and_the_excess_is_bounded(seed: int, power: float, d: int, n: int) -> None:
    table, basis = case(seed % 1000, m=60, d=d, n=n)
    alpha, block = 10**power, table.read(0, 60)
    system = FalkonSystem(basis, table, one(), intercept=False)
    G, Y = basis.features(block.X), block.Y

    def objective(found: Any) -> Any:
        beta = basis.L.T @ found.coefficients
        return ((Y - G @ beta) ** 2).sum(axis=0) + alpha * (beta**2).sum(axis=0)

    best = objective(system.solve(alpha, tol=1e-13))
    for most in (1, 2, 4):
        found = system.solve(alpha, tol=1e-13, most=most)
        excess = objective(found) - best
        assert (excess <= found.excess + 1e-9 * best).all()
        assert (excess >= -1e-9 * best).all()
        assert found.iterations <= most
        assert len(found.residuals) == found.iterations + 1
        np.testing.assert_allclose(found.residual_square, ((Y - G @ basis.L.T @ found.coefficients) ** 2).sum(axis=0))
    assert found.residuals[0] == pytest.approx(1.0)


def test_the_certificate_is_exact() -> None:
    X = CARD.X
    system = FalkonSystem(basis_of(X, SGMA), open_table(X, CARD.y), one())
    expected = [naive.residual_trace(CARD.K, SGMA[:n]) for n in range(7)]
    assert system.residual_path is not None
    np.testing.assert_allclose(system.residual_path, expected, rtol=1e-10)
    assert system.residual_trace == pytest.approx(8.62676, rel=1e-5)
    without = FalkonSystem(basis_of(X, SGMA), open_table(X, CARD.y), one(), residual_trace=False)
    assert without.residual_path is without.residual_trace is None
    np.testing.assert_allclose(without.solve(0.1).coefficients, system.solve(0.1).coefficients, rtol=1e-9)


def test_rows_of_a_sample_make_a_better_preconditioner_than_the_points() -> None:
    """Where alpha is small, or the basis no uniform sample."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 4))
    table, basis = open_table(X, np.sin(X[:, 0])), basis_of(X, np.argsort(-np.abs(X[:, 0]))[:80], Gaussian(2.0))
    session = one()
    sample = sampled_rows(table, session, 1000, seed=3)
    assert session.records[0].name == "rows for the preconditioner"
    held = sample.read(0, 1000).X
    assert {tuple(x) for x in held} <= {tuple(x) for x in X}
    assert len(np.unique(held, axis=0)) == 1000
    by_points, by_sample = (
        FalkonSystem(basis, table, one(), sample=which).solve(0.1, tol=1e-8) for which in (None, sample)
    )
    assert by_sample.iterations < 0.5 * by_points.iterations
    np.testing.assert_allclose(by_sample.residual_square, by_points.residual_square, rtol=1e-6)


@pytest.mark.slow
def test_iterations_on_kin40k() -> None:
    """The figures of docs/linear_systems.md: 10,000 rows, 400 of them as basis, alpha as small as GCV likes it."""
    stored = data_sets.load("kin40k")
    if stored is None:
        pytest.skip("kin40k is not in ../shared/data")
    X, y = (np.ascontiguousarray(rows[:10_000], dtype=np.float64) for rows in (stored.X, stored.y))
    table = open_table((X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std())
    points = table.read(0, 400).X
    basis, session = Basis(Gaussian(2.5), points, np.arange(400)), Session(ThreadExecutor(2))
    expected, counts = direct(table, basis, 0.01), []
    for each in (0, 4, 8):
        sample = sampled_rows(table, session, each * 400) if each else None
        found = FalkonSystem(basis, table, session, sample=sample).solve(0.01)
        values = [basis.block(points) @ which.coefficients + which.intercept for which in (found, expected)]
        np.testing.assert_allclose(*values, atol=1e-7)
        counts.append(found.iterations)
    assert np.abs(np.array(counts) - [129, 37, 23]).max() <= 4


# ----------------------------------------------------------------------------------------------------- sweeps and cuts
def test_one_sweep_an_iteration() -> None:
    table, basis = case()
    session = one()
    system = FalkonSystem(basis, table, session)
    assert [record.name for record in session.records] == ["right side of the normal equations"]
    found = system.solve(1.0)
    assert found.sweeps == len(session.records) - 1 == found.iterations + 1
    few = system.solve(1.0, tol=0.5)
    assert few.iterations < found.iterations
    # Another alpha needs no other right side.
    assert len(session.records) == 1 + found.sweeps + few.sweeps


@few_examples(0.4)
@given(data=st.data(), weighted=st.booleans())
def test_any_chunking_is_one_chunk(data: Any, weighted: bool) -> None:
    table, basis = case(m=30, n=6, weighted=weighted)
    whole = FalkonSystem(basis, table, one()).solve(0.5)
    session = cut_session(data.draw(cuts(30)), data.draw(st.sampled_from([1, 3, 30])))
    cut = FalkonSystem(basis, table, session).solve(0.5)
    np.testing.assert_allclose(cut.coefficients, whole.coefficients, rtol=1e-7, atol=1e-8)


def test_equal_bits_wherever_it_runs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 3)).astype(np.float32)
    table = open_table(zarr_of_chunks(tmp_path / "X.zarr", X, np.sin(X[:, 0]).astype(np.float64), 900))
    basis = basis_of(X, range(0, 20_000, 1000))

    def solve(session: Session) -> Any:
        return FalkonSystem(basis, table, session).solve(1.0, most=4).coefficients

    expected = solve(one())
    np.testing.assert_array_equal(solve(Session(ThreadExecutor(3, lambda leaves: leaves[::-1]))), expected)
    with thread_client() as client:
        np.testing.assert_array_equal(solve(Session(ClusterExecutor(client))), expected)


# ------------------------------------------------------------------------------------------------------ which is less
def test_the_choice_is_by_the_plans_count() -> None:
    assert choose_solver(100_000, 100, 10).solver == "direct"
    # Without the certificate the n^2 of every row is spared.
    assert choose_solver(10**6, 6000, 10, residual_trace=False).solver == "cg"
    # With it only the algebra of n^3 is: where n is large for m.
    assert choose_solver(10**6, 6000, 10).solver == "direct"
    assert choose_solver(20_000, 6000, 10).solver == "cg"
    m, n, p, d = 5000, 300, 7, 2
    choice = choose_solver(m, n, p, d, iterations=9, sample=1200)
    v = 2 * p + 50.0
    assert choice.direct == pytest.approx(m * (n**2 + n * (v + 2 * d)) + 6 * n**3, rel=1e-2)
    cg = m * (n**2 + n * (v + 2 * d) + 10 * n * (v + 4 * d)) + 1200 * (2 * n**2 + n * v) + 4 / 3 * n**3
    assert choice.cg == pytest.approx(cg, rel=1e-2)
    search = choose_solver(m, n, p, d, sample=1200, search=True)
    assert search.direct == pytest.approx(choice.direct + 2 * n**3, rel=1e-2)
    cg = m * (n**2 + n * (v + 2 * d) + 20 * n * (v + 16 * d) + 26 * n * (v + 4 * d))
    assert search.cg == pytest.approx(cg + 1200 * (2 * n**2 + n * v) + 2 * n**3, rel=2e-2)


def test_a_search_has_a_larger_sample_where_it_is_no_more_work() -> None:
    assert rows_for_search(32_000, 10_000, 54, 7) == 32_000  # all rows
    assert rows_for_search(400_000, 3000, 54, 7) == 9_000_000 // 61  # the memory of one matrix
    assert 80_000 < rows_for_search(400_000, 10_000, 54, 7) < 120_000  # the work of the search
    assert rows_for_search(10**6, 100, 20, 1) == 800


def test_the_plan_counts_what_is_done() -> None:
    table, basis = case()
    session = one()
    found = FalkonSystem(basis, table, session).solve(1.0)
    steps = falkon_steps(basis, 400, 2, iterations=found.iterations, sample=80)
    plan = make_plan(steps, TableShape.of(table), Machine(0, 1), disk_bytes=0)
    assert plan.sweeps == len(session.records)
    # Memory does not know of m, and has n^2 on the driver alone.
    many = make_plan(falkon_steps(basis, 10**9, 2), TableShape.of(table), Machine(0, 1), disk_bytes=0)
    assert many.memory_bytes < 1.1 * plan.memory_bytes


# ----------------------------------------------------------------------------------------------------- degenerate, bad
def test_an_empty_basis_predicts_the_mean() -> None:
    table, _ = case()
    found = FalkonSystem(Basis.empty(Gaussian(1.0), 3, FLOAT64), table, one()).solve(1.0)
    np.testing.assert_allclose(found.intercept, table.read(0, 400).Y.mean(axis=0))
    assert found.coefficients.shape == (0, 2)
    assert found.iterations == 0


def test_a_constant_target_and_one_row() -> None:
    X = np.random.default_rng(0).standard_normal((50, 2))
    Y = np.column_stack([np.full(50, 3.0), X[:, 0]])
    found = FalkonSystem(basis_of(X, range(5)), open_table(X, Y), one(), centre=[3.0, 0.0]).solve(1.0)
    assert found.converged
    assert found.intercept[0] == pytest.approx(3.0)
    np.testing.assert_allclose(found.coefficients[:, 0], 0.0, atol=1e-12)
    single = FalkonSystem(basis_of(X[:1], [0]), open_table(X[:1], Y[:1, 1]), one(), intercept=False).solve(1.0)
    assert single.coefficients[0, 0] == pytest.approx(X[0, 0] / 2)


def test_rounding_ends_what_a_tolerance_does_not() -> None:
    """A basis whose smallest pivot is 1e-7: products are known to some ten digits."""
    X = np.linspace(0, 1, 400)[:, None]
    basis = basis_of(X, range(0, 400, 50), Gaussian(1.0))
    assert basis.least_pivot < 1e-7
    found = FalkonSystem(basis, open_table(X, np.sin(9 * X[:, 0])), one()).solve(1e-3, tol=1e-15)
    assert found.ended == "rounding"
    expected = direct(open_table(X, np.sin(9 * X[:, 0])), basis, 1e-3)
    values = [basis.block(X) @ which.coefficients + which.intercept for which in (found, expected)]
    np.testing.assert_allclose(*values, atol=1e-7)


def test_what_is_refused() -> None:
    table, basis = case()
    with pytest.raises(ParameterError, match="no targets"):
        FalkonSystem(basis, table.without_targets(), one())
    system = FalkonSystem(basis, table, one())
    for alpha in (0.0, -1.0, np.nan, True, "1"):
        with pytest.raises(ParameterError, match="alpha"):
            system.solve(alpha)
    with pytest.raises(ParameterError, match="tol"):
        system.solve(1.0, tol=0)
    with pytest.raises(ParameterError, match="m = 0"):
        choose_solver(0, 3, 3)
    sums = one().sweep(NormalEquations(basis, np.zeros(2)), table, "sums")
    # Singular without rounding: its second pivot is 1 - 1.
    singular = replace(sums, H=np.ones_like(sums.H), G1=np.zeros_like(sums.G1))
    lost = FalkonSystem(basis, table, one(), sample=singular)
    with pytest.raises(NumericalError, match="larger alpha"):
        lost.solve(1e-300)


def test_what_rounding_stalls_is_ended_and_a_better_start_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products with noise: iterations end long before their largest number, no worse than they began."""
    table, basis = case()
    system = FalkonSystem(basis, table, one())
    exact, rng = system.product, np.random.default_rng(0)

    def noisy(beta: Any, alpha: float) -> Any:
        product = exact(beta, alpha)
        return product + 0.3 * np.linalg.norm(product) * rng.standard_normal(product.shape)

    start = system.solve(0.1).coefficients
    start = basis.L.T @ start
    monkeypatch.setattr(system, "product", noisy)
    found = system.solve(0.1, tol=1e-12)
    assert found.ended == "rounding"
    assert found.iterations < 250
    warm = system.solve(0.1, tol=1e-12, start=start)
    assert warm.ended == "rounding"
    assert (warm.residuals[-1] <= warm.residuals[0]).all()
