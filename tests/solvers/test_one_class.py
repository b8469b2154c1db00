"""One class, and the constant that is not penalised, against libsvm and the conditions of the minimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import cut_session
from sklearn.svm import SVC, SVR, OneClassSVM
from slow_cases import slow_but

from streamkernel.engine import Session
from streamkernel.reductions.margins import EpsilonInsensitive, Hinge, OneClass, PiecewiseLinear, Pinball, Target
from streamkernel.reductions.sums import Features
from streamkernel.solvers import MarginSolution, MarginStart, solve_margins
from streamkernel.table import open_table

RNG = np.random.default_rng(3)
G = np.abs(RNG.standard_normal((300, 6))) / 2 + RNG.standard_normal((300, 6)) / 8
NUMBERS = np.sin(3 * G[:, 0]) + G[:, 1] + 0.3 * RNG.standard_normal(300)
SIGNS = (NUMBERS > 1.0).astype(float)
CASES: dict[str, tuple[PiecewiseLinear, Any]] = {
    "hinge": (Hinge(0.7), SIGNS),
    "pinball": (Pinball(2.0, 0.9), NUMBERS),
    "tube": (EpsilonInsensitive(3.0, 0.2), NUMBERS),
    "one class": (OneClass(1.0 / (0.2 * 300)), None),
}


def solved(
    loss: PiecewiseLinear, Y: Any = None, rows: Any = G, session: Any = None, weights: Any = None, **options: Any
) -> MarginSolution:
    table, session = open_table(rows, Y, weights=weights), session or Session()
    [solution] = solve_margins(
        lambda step, name: session.sweep(step, table, name),
        Features(None, rows.shape[1]),
        [loss],
        [None if Y is None else Target(0)],
        **({"penalised_constant": False} | options),
    )
    return solution


def primal(loss: PiecewiseLinear, y: Any, b: Any, rows: Any = G, w: Any = 1.0) -> float:
    y = np.zeros(len(rows)) if y is None else y
    losses = w * loss.loss(y, rows @ b[:-1] + b[-1])
    return float(0.5 * b[:-1] @ b[:-1] + loss.constant_slope * b[-1] + losses.sum())


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.9])
def test_libsvm(nu: float) -> None:
    loss = OneClass(1.0 / (nu * 300))
    solution = solved(loss, tolerance=1e-7)
    machine = OneClassSVM(kernel="linear", nu=nu, tol=1e-9).fit(G)
    size = nu * 300
    theirs = np.append(machine.coef_[0], machine.intercept_[0]) / size
    assert solution.primal == pytest.approx(primal(loss, None, solution.coefficients), rel=1e-10)
    assert solution.primal == pytest.approx(primal(loss, None, theirs), rel=1e-5)
    assert solution.dual <= primal(loss, None, theirs)
    # The objective of libsvm's constant differs by less than the gap.
    np.testing.assert_allclose(solution.coefficients, theirs, atol=4e-4 * np.abs(theirs).max())


@pytest.mark.parametrize("nu", [0.02, 0.1, 0.5])
def test_nu_is_between_the_shares_of_outliers_and_support_vectors(nu: float) -> None:
    """Schoelkopf et al. 2001, proposition 3."""
    solution = solved(OneClass(1.0 / (nu * 300)), tolerance=1e-9)
    f = G @ solution.coefficients[:-1] + solution.coefficients[-1]
    near = 1e-4 * np.abs(f).max()
    assert (f < -near).mean() <= nu + 1 / 300
    assert (f <= near).mean() >= nu - 1 / 300


def test_a_share_of_all_rows() -> None:
    """nu = 1: no row is inside, and the functions of the minimum have the mean of the features."""
    solution = solved(OneClass(1.0 / 300), tolerance=1e-8)
    np.testing.assert_allclose(solution.coefficients[:-1], G.mean(axis=0), atol=1e-4)
    assert solution.primal == pytest.approx(-0.5 * G.mean(axis=0) @ G.mean(axis=0), rel=1e-7)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_libsvm_with_targets(C: float) -> None:
    ours = solved(Hinge(C), SIGNS, tolerance=1e-7)
    machine = SVC(kernel="linear", C=C, tol=1e-9).fit(G, SIGNS)
    theirs = np.append(machine.coef_[0], machine.intercept_)
    assert ours.primal == pytest.approx(primal(Hinge(C), SIGNS, theirs), rel=1e-5)
    loss = EpsilonInsensitive(C, 0.1)
    ours = solved(loss, NUMBERS, tolerance=1e-7)
    regression = SVR(kernel="linear", C=C, epsilon=0.1, tol=1e-9).fit(G, NUMBERS)
    theirs = np.append(regression.coef_[0], regression.intercept_)
    assert ours.primal == pytest.approx(primal(loss, NUMBERS, theirs), rel=1e-5)


@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.9])
def test_a_quantile_has_its_share_of_the_rows(quantile: float) -> None:
    """Exact with a constant that is not penalised (Koenker & Bassett 1978, theorem 3.4), far from 0 as well."""
    y = NUMBERS + 20.0
    solution = solved(Pinball(0.1, quantile), y, tolerance=1e-9)
    r = y - (G @ solution.coefficients[:-1] + solution.coefficients[-1])
    assert (r < -1e-4).mean() <= quantile <= (r <= 1e-4).mean()


@pytest.mark.parametrize("case", CASES)
def test_the_gap_holds_at_every_sweep(case: str) -> None:
    loss, y = CASES[case]
    solution = solved(loss, y, tolerance=1e-9)
    assert solution.converged
    assert solution.primal == pytest.approx(primal(loss, y, solution.coefficients), rel=1e-10)
    for iteration in solution.iterations:
        assert iteration.dual <= solution.primal <= iteration.primal
    # The bound is a bound on the objective of any coefficients.
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 0.1):
        moved = solution.coefficients + size * rng.standard_normal(len(solution.coefficients))
        assert solution.dual <= primal(loss, y, moved)


@pytest.mark.parametrize("case", CASES)
def test_integer_weights_are_repeated_rows(case: str) -> None:
    loss, y = CASES[case]
    w = np.arange(300) % 4
    some = np.repeat(np.arange(300), w)
    weighted = solved(loss, y, weights=w.astype(float), tolerance=1e-10)
    repeated = solved(loss, None if y is None else y[some], G[some], tolerance=1e-10)
    np.testing.assert_allclose(weighted.coefficients, repeated.coefficients, rtol=1e-8, atol=1e-8)
    assert weighted.primal == pytest.approx(repeated.primal, rel=1e-10)


@pytest.mark.parametrize("case", slow_but(CASES.keys() - {"tube"}, CASES))  # whose many sweeps take seconds
def test_workers_do_not_matter(case: str) -> None:
    loss, y = CASES[case]
    Y, rows = None if y is None else np.tile(y, 2), np.tile(G, (2, 1)) + 0.1 * RNG.standard_normal((600, 6))
    cuts = (230, 100, 50, 220)
    one = solved(loss, Y, rows, cut_session(cuts, 70, 1), tolerance=1e-7)
    two = solved(loss, Y, rows, cut_session(cuts, 70, 2), tolerance=1e-7)
    np.testing.assert_array_equal(one.coefficients, two.coefficients)
    assert one.iterations == two.iterations
    other = solved(loss, Y, rows, cut_session((600,), 64, 1), tolerance=1e-7)
    assert other.primal == pytest.approx(one.primal, rel=1e-6)


@pytest.mark.parametrize("start", [-3.0, 0.0, 7.0])
def test_any_start(start: float) -> None:
    """The sum of the dual variables is too large at some starts, and too small at others."""
    loss, _ = CASES["one class"]
    cold = solved(loss, tolerance=1e-7)
    warm = solved(loss, tolerance=1e-7, starts=[MarginStart(np.full(7, start), loss.C)])
    assert warm.primal == pytest.approx(cold.primal, rel=2e-7)


def test_equal_rows_and_rows_of_no_features() -> None:
    loss, _ = CASES["one class"]
    # v = g, and rho = |g|^2.
    solution = solved(loss, rows=np.full((300, 6), 0.5), tolerance=1e-8)
    assert solution.primal == pytest.approx(-0.5 * 1.5, rel=1e-7)
    solution = solved(loss, rows=np.zeros((300, 6)), tolerance=1e-8)
    assert solution.primal == pytest.approx(0.0, abs=1e-6)


def test_a_penalised_constant_of_one_class() -> None:
    """It has a minimum of its own; the bound is that of `sum w u` as a further coefficient."""
    loss, _ = CASES["one class"]
    solution = solved(loss, penalised_constant=True, tolerance=1e-8)
    b = solution.coefficients
    assert solution.primal == pytest.approx(primal(loss, None, b) + 0.5 * b[-1] ** 2, rel=1e-10)
    assert solution.converged
