"""The Lagrangian method: its iterates are those of the dual as it is printed, its end that of the active set method."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from problems import basis_of, cut_session

from streamkernel.engine import Session
from streamkernel.errors import ParameterError, StreamKernelWarning
from streamkernel.reductions.margins import LagrangianStep, SquaredHinge, Target
from streamkernel.reductions.sums import Features
from streamkernel.solvers import MarginSolution, solve_active_set, solve_lagrangian, solve_smooth_margins
from streamkernel.solvers.margins.lagrangian import steps_remembered
from streamkernel.table import open_table

CARD = naive.card()
CLASS = (CARD.t > 0).astype(float)
RNG = np.random.default_rng(3)
X = RNG.standard_normal((300, 4))
SIGNS = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.7 * RNG.standard_normal(300) > 0.4).astype(float)


def solved(
    rows: Any,
    y: Any,
    C: float,
    *,
    features: Features | None = None,
    session: Session | None = None,
    weights: Any = None,
    solve: Any = solve_lagrangian,
    **options: Any,
) -> MarginSolution:
    table, session = open_table(rows, y, weights=weights), session or Session()
    features = features or Features(None, rows.shape[1])
    found = solve(lambda step, name: session.sweep(step, table, name), features, C, **options)
    assert isinstance(found, MarginSolution)
    return found


def design(G: Any, y: Any) -> Any:
    return (2.0 * y - 1.0)[:, None] * np.column_stack([G, np.ones(len(G))])


@pytest.mark.parametrize("c", [pytest.param(1.0, marks=pytest.mark.slow), 1.9])
def test_the_example_of_the_card(c: float) -> None:
    """ALGORITHMS 8.2: a thousand iterations with beta = 1.9 / nu give six digits, two thousand with 1 / nu."""
    found = solved(CARD.X, CLASS, 2.0, c=c, tolerance=1e-12)
    np.testing.assert_allclose(found.coefficients, [1.32562, 1.36352, -0.685143], atol=1e-5)
    assert found.primal == pytest.approx(8.25794, abs=5e-6)
    assert (2000 if c == 1.0 else 1000) < len(found.iterations) < (2300 if c == 1.0 else 1300)


@pytest.mark.parametrize("c", [0.5, 1.0, 1.9])
def test_iterates_are_those_of_the_dual(c: float) -> None:
    """``b = H^T u``; more of them than are remembered, so that the first are forgotten."""
    steps: list[Any] = []
    table, session = open_table(X[:60], SIGNS[:60]), Session()

    def sweep(step: Any, name: str) -> Any:
        if isinstance(step, LagrangianStep):
            steps.append(step.steps[-1])
        return session.sweep(step, table, name)

    count = steps_remembered(c) + 20
    with pytest.warns(StreamKernelWarning, match="Lagrangian method made"):
        solve_lagrangian(sweep, Features(None, 4), 0.2, c=c, tolerance=0.0, most_sweeps=count + 1)
    H = design(X[:60], SIGNS[:60])
    expected = [H.T @ u for u in naive.lagrangian_iterates(H, 0.4, c / 0.4, count)]
    np.testing.assert_allclose(steps, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernel", [False, True])
def test_the_end_is_that_of_the_active_set_method(kernel: bool) -> None:
    features = Features.of_basis(basis_of(X, list(range(12)))) if kernel else None
    lagrangian = solved(X, SIGNS, 0.05, features=features, tolerance=1e-20)
    other = solved(X, SIGNS, 0.05, features=features, tolerance=0.0, solve=solve_active_set)
    assert lagrangian.converged
    np.testing.assert_allclose(lagrangian.coefficients, other.coefficients, rtol=1e-9, atol=1e-10)
    assert lagrangian.primal == pytest.approx(other.primal, rel=1e-13)


@pytest.mark.parametrize("C", [0.02, 0.05])
@pytest.mark.parametrize("kernel", [False, True])
def test_three_methods_have_one_solution(kernel: bool, C: float) -> None:
    """Newton's method, ASVM and LSVM, on kernel features and on the columns, however these are cut."""
    features = Features.of_basis(basis_of(X, list(range(12)))) if kernel else Features(None, 4)
    sessions = Session(), cut_session((120, 1, 79, 100), 64, 2)
    tables = [open_table(X, SIGNS) for _ in sessions]
    for session, table in zip(sessions, tables, strict=True):

        def sweep(step: Any, name: str, session: Session = session, table: Any = table) -> Any:
            return session.sweep(step, table, name)

        [newton] = solve_smooth_margins(sweep, features, [SquaredHinge(C)], [Target(0)], tolerance=1e-15)
        others = (
            solve_active_set(sweep, features, C, tolerance=0.0),
            solve_lagrangian(sweep, features, C, tolerance=1e-20),
        )
        for other in others:
            np.testing.assert_allclose(other.coefficients, newton.coefficients, rtol=1e-9, atol=1e-10)
            assert other.primal == pytest.approx(newton.primal, rel=1e-12)


def test_without_a_constant() -> None:
    found = solved(X, SIGNS, 0.05, intercept=False, tolerance=1e-18)
    H, b = design(X, SIGNS)[:, :-1], found.coefficients[:-1]
    assert found.coefficients[-1] == 0.0
    np.testing.assert_allclose(b, 0.1 * H.T @ np.maximum(1.0 - H @ b, 0.0), rtol=1e-8)


def test_the_gap_holds_at_every_sweep() -> None:
    found = solved(X, SIGNS, 0.05, tolerance=1e-12)
    for iteration in found.iterations:
        assert iteration.dual <= found.primal * (1 + 1e-12)
        assert iteration.primal - found.primal <= iteration.gap * (1 + 1e-9) + 1e-9


def test_chunks_and_workers_do_not_matter() -> None:
    cuts = (120, 1, 79, 100)
    one, two = (
        solved(X, SIGNS, 0.05, c=1.9, session=cut_session(cuts, 64, threads), tolerance=1e-8) for threads in (1, 2)
    )
    np.testing.assert_array_equal(one.coefficients, two.coefficients)
    assert one.iterations == two.iterations
    np.testing.assert_allclose(solved(X, SIGNS, 0.05, c=1.9, tolerance=1e-8).coefficients, one.coefficients, rtol=1e-9)


def test_integer_weights_are_repeated_rows() -> None:
    w = np.arange(300) % 4
    some = np.repeat(np.arange(300), w)
    weighted = solved(X, SIGNS, 0.03, weights=w.astype(float), tolerance=1e-18)
    repeated = solved(X[some], SIGNS[some], 0.03, tolerance=1e-18)
    np.testing.assert_allclose(weighted.coefficients, repeated.coefficients, rtol=1e-9)


@pytest.mark.parametrize("c", [0.0, 2.0, -1.0, np.nan])
def test_a_beta_that_does_not_converge(c: float) -> None:
    with pytest.raises(ParameterError, match="between 0 and 2"):
        solved(X, SIGNS, 1.0, c=c)
