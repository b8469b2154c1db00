"""Smooth losses: their derivatives, the sums of a step, and the minimum against SciPy and the examples of the card."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import data_sets
import naive
import numpy as np
import pytest
from problems import blocks, cut_session
from scipy.optimize import minimize

from streamkernel.engine import Session
from streamkernel.errors import StreamKernelWarning
from streamkernel.reductions.margins import (
    Huber,
    Line,
    Logistic,
    Smooth,
    SmoothedHinge,
    SmoothStep,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    Target,
)
from streamkernel.reductions.sums import Features
from streamkernel.solvers import MarginSolution, solve_smooth_margins, warn_of_gap
from streamkernel.table import open_table

CARD = naive.card()
SGMA = [17, 4, 27, 33, 29, 20]
RNG = np.random.default_rng(2)
G = RNG.standard_normal((400, 8))
NUMBERS = np.sin(G[:, 0]) + 0.5 * G[:, 1] + 0.4 * RNG.standard_normal(400)
SIGNS = (NUMBERS > 0.3).astype(float)
FEATURES = Features(None, 8)
WITH_ONE = np.hstack([G, np.ones((400, 1))])
CASES: dict[str, tuple[Smooth, Any]] = {
    "squared hinge": (SquaredHinge(0.7), SIGNS),
    "squared hinge of a large C": (SquaredHinge(1e4), SIGNS),
    "smoothed hinge": (SmoothedHinge(0.7, 5.0), SIGNS),
    "squared tube": (SquaredEpsilonInsensitive(3.0, 0.2), NUMBERS),
    "huber": (Huber(3.0, 0.3), NUMBERS),
    "logistic": (Logistic(2.0), SIGNS),
    "squared": (Squared(0.5), NUMBERS),
}


def by_hand(case: str, f: Any) -> Any:
    """The formulas of the losses, in other words."""
    loss, y = CASES[case]
    t, r = 2 * y - 1, y - f
    if "squared hinge" in case:
        each = np.where(t * f < 1, (1 - t * f) ** 2, 0)
    elif case == "smoothed hinge":
        each = (1 - t * f + np.log1p(np.exp(-5.0 * (1 - t * f))) / 5.0) ** 2
    elif case == "squared tube":
        each = np.where(np.abs(r) > 0.2, (np.abs(r) - 0.2) ** 2, 0)
    elif case == "huber":
        each = np.where(np.abs(r) <= 0.3, r**2, 0.6 * np.abs(r) - 0.09)
    elif case == "logistic":
        each = -np.log(1 / (1 + np.exp(-t * f)))
    else:
        each = r**2
    return loss.C * each


def solved(
    losses: Any, Y: Any, columns: Any = (0,), session: Any = None, rows: Any = G, weights: Any = None, **options: Any
) -> tuple[MarginSolution, ...]:
    table, session = open_table(rows, Y, weights=weights), session or Session()
    targets = [Target(column) for column in columns]
    return solve_smooth_margins(
        lambda step, name: session.sweep(step, table, name),
        Features(None, rows.shape[1]),
        losses,
        targets,
        **options,
    )


@pytest.mark.parametrize("case", CASES)
def test_derivatives(case: str) -> None:
    loss, y = CASES[case]
    f = 1.5 * RNG.standard_normal(400)
    found = loss.at(y, f)
    np.testing.assert_allclose(found.loss, by_hand(case, f), rtol=1e-12, atol=1e-12)
    h = 1e-6
    up, down = loss.at(y, f + h), loss.at(y, f - h)
    np.testing.assert_allclose(found.slope, (up.loss - down.loss) / (2 * h), rtol=1e-5, atol=1e-6 * loss.C)
    # The curvature of some jumps at a kink of the slope.
    smooth = np.abs(up.curvature - down.curvature) <= 1e-3 * loss.C
    assert smooth.mean() > 0.9
    difference = (up.slope - down.slope) / (2 * h)
    np.testing.assert_allclose(found.curvature[smooth], difference[smooth], rtol=1e-4, atol=1e-5 * loss.C)


@pytest.mark.parametrize("case", CASES)
def test_far_values_do_not_overflow(case: str) -> None:
    loss, _ = CASES[case]
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        found = loss.at(np.array([0.0, 1.0, 0.0, 1.0]), np.array([1e6, 1e6, -1e6, -1e6]))
    assert all(np.isfinite(part).all() for part in found)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums(weighted: bool) -> None:
    names, columns = list(CASES), [0 if CASES[name][1] is SIGNS else 1 for name in CASES]
    Y, w = np.column_stack([SIGNS, NUMBERS]), RNG.uniform(0.1, 3.0, 400) if weighted else np.ones(400)
    lines = tuple(Line(*0.5 * RNG.standard_normal((2, 9))) for _ in names)
    lengths = (1.0, 0.5, 0.0)
    losses, targets = tuple(CASES[name][0] for name in names), tuple(Target(column) for column in columns)
    step = SmoothStep(FEATURES, losses, targets, lines, lengths)
    state = None
    for block in blocks(G, Y, [150, 1, 249], w if weighted else None):
        mapped = step.map_block(block)
        state = mapped if state is None else step.combine(state, mapped)
    assert state is not None
    for name, line, sums in zip(names, lines, step.finalize(state).problems, strict=True):
        loss, y = CASES[name]
        expected = [w @ by_hand(name, WITH_ONE @ (line.start + t * (line.end - line.start))) for t in lengths]
        np.testing.assert_allclose(sums.losses, expected, rtol=1e-10)
        parts = loss.at(y, WITH_ONE @ line.end)
        np.testing.assert_allclose(sums.gradient, WITH_ONE.T @ (w * parts.slope), rtol=1e-9, atol=1e-9 * loss.C)
        curvature = WITH_ONE.T @ ((w * parts.curvature)[:, None] * WITH_ONE)
        np.testing.assert_allclose(sums.curvature, curvature, rtol=1e-9, atol=1e-9 * loss.C)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_the_minimum(case: str, intercept: bool) -> None:
    loss, y = CASES[case]
    F = WITH_ONE if intercept else G

    def objective(b: Any) -> Any:
        f = F @ b
        return 0.5 * b @ b + by_hand(case, f).sum(), b + F.T @ loss.at(y, f).slope

    [solution] = solved([loss], y, tolerance=1e-12, intercept=intercept)
    b = solution.coefficients[: F.shape[1]]
    found = minimize(
        objective, np.zeros(F.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
    )
    assert solution.converged
    assert solution.primal == pytest.approx(objective(b)[0], rel=1e-12)
    assert objective(b)[0] <= found.fun * (1 + 1e-12)
    assert found.fun == pytest.approx(solution.primal, rel=1e-7)
    assert solution.dual <= solution.primal
    if not intercept:
        assert solution.coefficients[-1] == 0.0


def test_the_gap_holds_at_every_sweep() -> None:
    [solution] = solved([CASES["squared hinge of a large C"][0]], SIGNS, tolerance=1e-12)
    best = np.inf
    for iteration in solution.iterations:
        best = min(best, iteration.primal)
        assert iteration.dual <= solution.primal * (1 + 1e-12)
        assert best - solution.primal <= iteration.gap * (1 + 1e-9) + 1e-9


def test_linear_machine_of_the_card() -> None:
    """ALGORITHMS 8.1: C = 2 on X; its constant has the other sign. Few steps, as ASVM's."""
    t = (CARD.t > 0).astype(float)
    [solution] = solved([SquaredHinge(2.0)], t, rows=CARD.X, tolerance=1e-14)
    np.testing.assert_allclose(solution.coefficients, [1.32562, 1.36352, -0.685143], atol=5e-6)
    assert solution.primal == pytest.approx(8.25794, abs=5e-6)
    assert len(solution.iterations) <= 8


def test_kernel_machine_of_the_card() -> None:
    """ALGORITHMS 22: the whitened features of six rows and a constant, C = 2."""
    basis = [3, 10, 17, 24, 31, 38]
    rows = np.linalg.solve(np.linalg.cholesky(CARD.K[np.ix_(basis, basis)]), CARD.K[basis]).T
    t = (CARD.t > 0).astype(float)
    [solution] = solved([SquaredHinge(2.0)], t, rows=np.ascontiguousarray(rows), tolerance=1e-14)
    assert solution.primal == pytest.approx(15.5671402590, abs=1e-8)
    assert solution.dual == pytest.approx(15.5671402590, abs=1e-8)


@pytest.mark.parametrize(("sharpness", "objective"), [(5.0, 7.97444), (50.0, 7.32172), (1e4, 7.32058)])
def test_rsvm_of_the_card(sharpness: float, objective: float) -> None:
    """ALGORITHMS 8.4: kernel values as features, C = 1."""
    t = (CARD.t > 0).astype(float)
    K = np.ascontiguousarray(CARD.K[:, SGMA])
    [solution] = solved([SmoothedHinge(1.0, sharpness)], t, rows=K, tolerance=1e-10)
    assert solution.primal == pytest.approx(objective, abs=5e-6)
    if sharpness == 1e4:
        expected = [-1.18575, -0.311937, 1.22807, 0.935344, -0.39965, -0.377599, -0.313796]
        np.testing.assert_allclose(solution.coefficients, expected, atol=2e-5)


def test_the_smoothed_hinge_becomes_the_squared_one() -> None:
    [sharp] = solved([SmoothedHinge(0.7, 1e5)], SIGNS, tolerance=1e-12)
    [squared] = solved([SquaredHinge(0.7)], SIGNS, tolerance=1e-12)
    np.testing.assert_allclose(sharp.coefficients, squared.coefficients, atol=1e-4)


def test_problems_share_their_sweeps() -> None:
    losses, Y = [SquaredHinge(1.0), SquaredHinge(1.0), Huber(1.0, 0.5)], np.column_stack([SIGNS, 1.0 - SIGNS, NUMBERS])
    found = solved(losses, Y, [0, 1, 2], tolerance=1e-10)
    for k in range(3):
        [alone] = solved(losses[k : k + 1], Y, [k], tolerance=1e-10)
        np.testing.assert_allclose(found[k].coefficients, alone.coefficients, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[0].coefficients, -found[1].coefficients, atol=1e-10)


def test_chunks_and_workers_do_not_matter() -> None:
    X = RNG.standard_normal((3000, 8))
    y = (X[:, 0] + 0.5 * RNG.standard_normal(3000) > 0).astype(float)

    def fitted(cuts: Any, block: int, threads: int) -> MarginSolution:
        session = cut_session(cuts, block, threads)
        return solved([SquaredHinge(1.0)], y, rows=X, session=session, tolerance=1e-12)[0]

    cuts = (700, 1300, 150, 850)
    one, two = fitted(cuts, 200, 1), fitted(cuts, 200, 2)
    np.testing.assert_array_equal(one.coefficients, two.coefficients)
    assert one.iterations == two.iterations
    np.testing.assert_allclose(fitted((3000,), 64, 1).coefficients, one.coefficients, rtol=1e-8)


@pytest.mark.parametrize("case", CASES)
def test_integer_weights_are_repeated_rows(case: str) -> None:
    loss, y = CASES[case]
    w = np.arange(400) % 4
    some = np.repeat(np.arange(400), w)
    [weighted] = solved([loss], y, weights=w.astype(float), tolerance=1e-14)
    [repeated] = solved([loss], y[some], rows=G[some], tolerance=1e-14)
    np.testing.assert_allclose(weighted.coefficients, repeated.coefficients, rtol=1e-7, atol=1e-10)
    assert weighted.primal == pytest.approx(repeated.primal, rel=1e-10)


def test_a_start_near_the_solution_saves_sweeps() -> None:
    [first] = solved([SquaredHinge(0.7)], SIGNS)
    [cold] = solved([SquaredHinge(0.75)], SIGNS)
    [warm] = solved([SquaredHinge(0.75)], SIGNS, starts=[first.start])
    assert len(warm.iterations) < len(cold.iterations)


def test_equal_rows_and_one_class() -> None:
    for rows in (np.ones((400, 8)), np.zeros((400, 8)), G):
        for y in (SIGNS, np.ones(400), np.zeros(400)):
            for loss in (SquaredHinge(10.0), Logistic(10.0), SmoothedHinge(10.0, 50.0)):
                assert solved([loss], y, rows=rows)[0].converged


def test_a_record_for_every_sweep() -> None:
    """Sweeps whose step is too long count as others do."""
    for loss in (Huber(1e4, 0.3), SquaredHinge(1e4), SmoothedHinge(1e4, 50.0)):
        session = Session()
        [solution] = solved([loss], NUMBERS if isinstance(loss, Huber) else SIGNS, session=session, tolerance=1e-12)
        assert len(solution.iterations) == len(session.records)


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("logistic", "squared")])
def test_a_band_of_all_rows_is_solved_between_two_sweeps(case: str) -> None:
    loss, y = CASES[case]
    some = slice(150)  # the band has 160 rows
    [banded] = solved([loss], y[some], rows=np.ascontiguousarray(G[some]), tolerance=1e-8)
    [plain] = solved([loss], y[some], rows=np.ascontiguousarray(G[some]), tolerance=1e-12, band=False)
    assert len(banded.iterations) <= 3 < len(plain.iterations)
    np.testing.assert_allclose(banded.coefficients, plain.coefficients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("intercept", [True, False])
def test_a_band_does_not_change_the_minimum(case: str, intercept: bool) -> None:
    loss, y = CASES[case]
    w = RNG.uniform(0.1, 3.0, 400)
    found = [solved([loss], y, weights=w, tolerance=1e-14, band=band, intercept=intercept)[0] for band in (True, False)]
    np.testing.assert_allclose(found[0].coefficients, found[1].coefficients, rtol=1e-7, atol=1e-10)


def _with_rounding(share: float) -> Any:
    """A sweep whose losses have an error that rises from sweep to sweep, as sums in other orders have."""
    table, session, sweeps = open_table(G, SIGNS), Session(), [0]

    def sweep(step: Any, name: str) -> Any:
        sweeps[0] += 1
        sums = session.sweep(step, table, name)
        each = (replace(one, losses=one.losses * (1.0 + share * sweeps[0])) for one in sums.problems)
        return replace(sums, problems=tuple(each))

    return sweep


@pytest.mark.parametrize("band", [True, False])
def test_rounding_of_the_objective_does_not_hide_a_smaller_gap(band: bool) -> None:
    """Near the minimum a full step may have the larger objective."""
    [solution] = solve_smooth_margins(
        _with_rounding(1e-12), FEATURES, [Logistic(2.0)], [Target(0)], tolerance=1e-15, band=band
    )
    assert solution.converged
    assert solution.gap <= 1e-15 * solution.primal


@pytest.mark.parametrize("loss", [Logistic(2.0), SquaredHinge(2.0)])
def test_it_ends_where_rounding_hides_a_decrease(loss: Smooth) -> None:
    """With the best coefficients and the gap that they have, not with an error or after sweeps that gain nothing."""
    [solution] = solve_smooth_margins(_with_rounding(1e-12), FEATURES, [loss], [Target(0)], tolerance=0.0)
    assert not solution.converged
    assert len(solution.iterations) < 20
    assert 0.0 <= solution.gap < 1e-12 * solution.primal
    [exact] = solved([loss], SIGNS, tolerance=1e-14)
    np.testing.assert_allclose(solution.coefficients, exact.coefficients, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_the_curvature_is_smooth_within_the_distance_of_the_kink(case: str) -> None:
    loss, y = CASES[case]
    f = 1.5 * np.random.default_rng(5).standard_normal(400)
    distance = loss.kink_distance(y, f)
    if case in ("logistic", "squared"):
        assert np.isinf(distance).all()
        return
    curvature = loss.at(y, f).curvature
    if case != "smoothed hinge":
        for way in (-1.0, 1.0):
            np.testing.assert_array_equal(loss.at(y, f + way * 0.999 * distance).curvature, curvature)
    changed = [loss.at(y, f + way * (1.001 * distance)).curvature != curvature for way in (-1.0, 1.0)]
    assert (changed[0] | changed[1]).all()


def test_too_few_sweeps_are_told() -> None:
    [solution] = solved([SquaredHinge(1e4)], SIGNS, tolerance=1e-12, most_sweeps=2)
    with pytest.warns(StreamKernelWarning, match="within .* of the least objective after 2 sweeps, not within 1e-12"):
        warn_of_gap([solution], 1e-12, "a smaller C")
    assert not solution.converged
    assert solution.dual <= solution.primal


@pytest.mark.parametrize("C", [*(pytest.param(C, marks=pytest.mark.slow) for C in (1.0, 10.0)), 100.0])
def test_adult(C: float) -> None:
    """A gap of 1e-6 in six sweeps on a real table: 16,000 rows of a9a, 200 functions."""
    real = data_sets.load("a9a")
    if real is None:
        pytest.skip("shared/data/a9a.npz is missing")
    order = np.random.default_rng(0).permutation(len(real.X))[:16_000]
    X, y = real.X[order].astype(float), (real.y[order] == real.y.max()).astype(float)
    Z = X[:200]
    K = np.exp(-0.5 * np.maximum((X**2).sum(1)[:, None] + (Z**2).sum(1) - 2 * X @ Z.T, 0) / 8.0)
    rows = np.linalg.solve(np.linalg.cholesky(K[:200] + 1e-8 * np.eye(200)), K.T).T
    [solution] = solved([SquaredHinge(C)], y, rows=np.ascontiguousarray(rows), tolerance=1e-6)
    assert solution.converged
    assert len(solution.iterations) <= 6
