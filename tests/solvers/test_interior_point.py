"""Piecewise linear losses against the dual problem over all rows, and against liblinear."""

from __future__ import annotations

from typing import Any

import data_sets
import numpy as np
import pytest
from problems import cut_session
from scipy.optimize import minimize
from sklearn.svm import LinearSVC, LinearSVR

from streamkernel.engine import Session
from streamkernel.errors import StreamKernelWarning
from streamkernel.reductions.margins import EpsilonInsensitive, Hinge, PiecewiseLinear, Pinball, Target
from streamkernel.reductions.sums import Features
from streamkernel.solvers import MarginSolution, solve_margins, warn_of_gap
from streamkernel.table import Table, open_table

RNG = np.random.default_rng(2)
G = RNG.standard_normal((400, 8))
NUMBERS = np.sin(G[:, 0]) + 0.5 * G[:, 1] + 0.4 * RNG.standard_normal(400)
SIGNS = (NUMBERS > 0.3).astype(float)
FEATURES = Features(None, 8)
WITH_ONE = np.hstack([G, np.ones((400, 1))])
CASES: dict[str, tuple[PiecewiseLinear, Any]] = {
    "hinge": (Hinge(0.7), SIGNS),
    "hinge of a large C": (Hinge(1000.0), SIGNS),
    "hinge of a small C": (Hinge(1e-4), SIGNS),
    "pinball": (Pinball(2.0, 0.9), NUMBERS),
    "tube": (EpsilonInsensitive(3.0, 0.2), NUMBERS),
    "no tube": (EpsilonInsensitive(3.0, 0.0), NUMBERS),
    "a tube around all": (EpsilonInsensitive(3.0, 50.0), NUMBERS),
}


def solved(
    losses: Any, Y: Any, columns: Any = (0,), session: Any = None, rows: Any = G, weights: Any = None, **options: Any
) -> tuple[MarginSolution, ...]:
    table: Table = open_table(rows, Y, weights=weights)
    session = session or Session()
    targets = [Target(column) for column in columns]
    return solve_margins(
        lambda step, name: session.sweep(step, table, name),
        FEATURES,
        losses,
        targets,
        **options,
    )


def of_dual(loss: PiecewiseLinear, y: Any, F: Any = WITH_ONE) -> float:
    """Largest dual objective, by L-BFGS-B over the boxes of all rows.

    It ends far from the maximum, and rounding decides how far: it is begun again where it ended until it gains nothing.
    """
    kinks = loss.kinks(y)
    targets, low = np.concatenate([kink.targets for kink in kinks]), np.concatenate([kink.low for kink in kinks])
    F = np.tile(F, (len(kinks), 1))

    def negative(u: Any) -> Any:
        pull = F.T @ u
        return 0.5 * pull @ pull - targets @ u, F @ pull - targets

    boxes = list(zip(low, low + loss.C, strict=True))
    options = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 50}
    start, found = low + 0.5 * loss.C, list[float]()
    while len(found) < 2 or found[-1] - found[-2] > 1e-12 * abs(found[-1]):
        ended = minimize(negative, start, jac=True, bounds=boxes, method="L-BFGS-B", options=options)
        start = ended.x
        found.append(-float(ended.fun))
    return found[-1]


@pytest.mark.parametrize("case", CASES)
def test_the_minimum(case: str) -> None:
    loss, y = CASES[case]
    [solution] = solved([loss], y, tolerance=1e-8)
    b = solution.coefficients
    primal = 0.5 * b @ b + loss.loss(y, WITH_ONE @ b).sum()
    assert solution.primal == pytest.approx(primal, rel=1e-10)
    assert solution.converged
    assert -1e-12 * abs(primal) <= solution.gap <= 1e-8 * primal + 1e-9
    dual = of_dual(loss, y)
    assert dual == pytest.approx(primal, rel=1e-8, abs=1e-9)
    assert dual <= primal * (1 + 1e-12)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_liblinear(C: float) -> None:
    [solution] = solved([Hinge(C)], SIGNS, tolerance=1e-9)
    machine = LinearSVC(C=C, loss="hinge", tol=1e-8, max_iter=5_000_000).fit(G, SIGNS)
    np.testing.assert_allclose(solution.coefficients[:-1], machine.coef_[0], atol=2e-4)
    np.testing.assert_allclose(solution.coefficients[-1], machine.intercept_[0], atol=2e-4)
    [solution] = solved([EpsilonInsensitive(C, 0.1)], NUMBERS, tolerance=1e-9)
    regression = LinearSVR(C=C, epsilon=0.1, tol=1e-8, max_iter=5_000_000).fit(G, NUMBERS)
    np.testing.assert_allclose(solution.coefficients[:-1], regression.coef_, atol=2e-4)
    np.testing.assert_allclose(solution.coefficients[-1], regression.intercept_, atol=2e-4)


def test_the_gap_holds_at_every_sweep() -> None:
    loss, y = CASES["tube"]
    [solution] = solved([loss], y, tolerance=1e-9)
    best = solution.primal
    # Variables of 0 are in the boxes: their bound is 0.
    primal, dual = np.inf, 0.0
    for iteration in solution.iterations:
        assert iteration.dual <= best <= iteration.primal
        primal, dual = min(primal, iteration.primal), max(dual, iteration.dual)
        assert iteration.gap == primal - dual
        assert primal - best <= iteration.gap


def test_a_tube_around_all_rows_is_solved_at_once() -> None:
    # The loss is 0 at b = 0, and no objective is less: the bound of u = 0 says so.
    tubes = [EpsilonInsensitive(1.0, 100.0), EpsilonInsensitive(1e5, 100.0)]
    [first, other] = solved(tubes, NUMBERS, [0, 0])
    assert first.converged
    assert (first.primal, first.dual, first.gap, first.relative_gap) == (0.0, 0.0, 0.0, 0.0)
    assert len(first.iterations) == len(other.iterations) == 1
    # Where the objective is 0 a start has no barrier, and that of a narrower tube is not 0.
    assert first.start.barrier == 0.0
    [narrow] = solved([EpsilonInsensitive(1.0, 0.1)], NUMBERS, starts=[first.start])
    [cold] = solved([EpsilonInsensitive(1.0, 0.1)], NUMBERS)
    assert narrow.primal == pytest.approx(cold.primal, rel=1e-6)


def test_problems_share_their_sweeps() -> None:
    losses, Y = [Hinge(1.0), Hinge(1.0), Pinball(1.0, 0.5)], np.column_stack([SIGNS, 1.0 - SIGNS, NUMBERS])
    sweeps: list[int] = []
    table = open_table(G, Y)

    def sweep(step: Any, name: str) -> Any:
        sweeps.append(len(step.losses))
        return Session().sweep(step, table, name)

    found = solve_margins(sweep, FEATURES, losses, [Target(0), Target(1), Target(2)], tolerance=1e-6)
    for k in range(3):
        [alone] = solved(losses[k : k + 1], Y, [k], tolerance=1e-6)
        np.testing.assert_allclose(found[k].coefficients, alone.coefficients, rtol=1e-9, atol=1e-12)
    assert len(sweeps) == max(len(solution.iterations) for solution in found)
    # A solved problem takes part in no further sweep.
    assert sum(sweeps) == sum(len(solution.iterations) for solution in found)
    np.testing.assert_allclose(found[0].coefficients, -found[1].coefficients, atol=1e-12)


def test_chunks_and_workers_do_not_matter() -> None:
    X = RNG.standard_normal((3000, 8))
    y = (X[:, 0] + 0.5 * RNG.standard_normal(3000) > 0).astype(float)

    def fitted(cuts: Any, block: int, threads: int) -> MarginSolution:
        session = cut_session(cuts, block, threads)
        return solved([Hinge(1.0)], y, rows=X, session=session, tolerance=1e-7)[0]

    cuts = (700, 1300, 150, 850)
    one, two = fitted(cuts, 200, 1), fitted(cuts, 200, 2)
    np.testing.assert_array_equal(one.coefficients, two.coefficients)
    assert one.iterations == two.iterations
    other = fitted((3000,), 64, 1)
    np.testing.assert_allclose(other.coefficients, one.coefficients, atol=1e-4)
    assert other.primal == pytest.approx(one.primal, rel=1e-7)


@pytest.mark.parametrize("case", ["hinge", "pinball", "tube"])
def test_integer_weights_are_repeated_rows(case: str) -> None:
    loss, y = CASES[case]
    w = np.arange(400) % 4
    some = np.repeat(np.arange(400), w)
    [weighted] = solved([loss], y, weights=w.astype(float), tolerance=1e-10)
    [repeated] = solved([loss], y[some], rows=G[some], tolerance=1e-10)
    np.testing.assert_allclose(weighted.coefficients, repeated.coefficients, rtol=1e-9, atol=1e-9)
    assert weighted.primal == pytest.approx(repeated.primal, rel=1e-10)


def test_a_start_near_the_solution_saves_sweeps() -> None:
    loss, y = CASES["hinge"]
    [first] = solved([loss], y, tolerance=1e-4)
    [cold] = solved([Hinge(0.8)], y, tolerance=1e-4)
    [warm] = solved([Hinge(0.8)], y, tolerance=1e-4, starts=[first.start])
    assert len(warm.iterations) < len(cold.iterations)
    assert warm.primal == pytest.approx(cold.primal, rel=2e-4)


def test_no_constant() -> None:
    loss, y = CASES["hinge"]
    [solution] = solved([loss], y, intercept=False, tolerance=1e-8)
    assert solution.coefficients[-1] == 0.0
    assert of_dual(loss, y, G) == pytest.approx(solution.primal, rel=1e-6)


def test_quantiles_have_their_share_of_the_rows_below() -> None:
    y = NUMBERS - NUMBERS.mean()
    found = solved([Pinball(100.0, q) for q in (0.1, 0.5, 0.9)], y, (0, 0, 0), tolerance=1e-7)
    for q, solution in zip((0.1, 0.5, 0.9), found, strict=True):
        below = (y < WITH_ONE @ solution.coefficients).mean()
        # As many rows as there are coefficients lie on the plane.
        assert abs(below - q) <= 10 / 400


def test_one_class_alone_and_equal_rows() -> None:
    """No margin to find; every row the same."""
    [solution] = solved([Hinge(1.0)], np.ones(400), tolerance=1e-8)
    assert solution.converged
    [solution] = solved([Hinge(1.0)], SIGNS, rows=np.ones((400, 8)), tolerance=1e-8)
    assert solution.converged
    [solution] = solved([Hinge(1.0)], SIGNS, rows=np.zeros((400, 8)), tolerance=1e-8)
    assert solution.converged


def test_too_few_sweeps_are_told() -> None:
    loss, y = CASES["hinge of a large C"]
    [solution] = solved([loss], y, tolerance=1e-8, most_sweeps=3)
    with pytest.warns(StreamKernelWarning, match="within .* of the least objective after 3 sweeps, not within 1e-08"):
        warn_of_gap([solution], 1e-8, "a smaller C")
    assert not solution.converged
    assert solution.dual <= solution.primal


@pytest.mark.parametrize("C", [pytest.param(1.0, marks=pytest.mark.slow), 100.0])
def test_adult(C: float) -> None:
    """The gap in few sweeps on a real table: 16,000 rows of a9a, 200 functions."""
    real = data_sets.load("a9a")
    if real is None:
        pytest.skip("shared/data/a9a.npz is missing")
    X, y = real.X, real.y
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))[:16_000]
    X, y = X[order].astype(float), (y[order] == y.max()).astype(float)
    Z = X[:200]
    K = np.exp(-0.5 * np.maximum((X**2).sum(1)[:, None] + (Z**2).sum(1) - 2 * X @ Z.T, 0) / 8.0)
    rows = np.linalg.solve(np.linalg.cholesky(K[:200] + 1e-8 * np.eye(200)), K.T).T
    table, session = open_table(rows, y), Session()
    [solution] = solve_margins(
        lambda step, name: session.sweep(step, table, name),
        Features(None, 200),
        [Hinge(C)],
        [Target(0)],
        tolerance=1e-6,
    )
    assert solution.converged
    assert len(solution.iterations) <= 40
    best = np.inf, -np.inf
    for iteration in solution.iterations[:20]:
        best = min(best[0], iteration.primal), max(best[1], iteration.dual)
    assert best[0] - best[1] <= 1e-3 * best[0]
