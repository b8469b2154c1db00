"""The default rules: few sweeps whatever n is, better bases than random pivots, honest ends."""

from __future__ import annotations

import weakref
from dataclasses import replace
from itertools import pairwise

import data_sets
import naive
import numpy as np
import pytest
from numpy.typing import NDArray
from problems import problem_of, select

from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian, Linear, Polynomial
from streamkernel.reductions.pools import PoolColumns
from streamkernel.selection import Greedy, Problem, RowCache, RPCholesky, Selection, _draws, as_kappa, as_rule
from streamkernel.selection.rounds import Fixed, Geometric
from streamkernel.selection.scores import FunctionSpace
from streamkernel.solvers import median_lengthscale


@pytest.mark.parametrize("n", [1, 2, 7, 16, 100, 101, 2000])
def test_rounds_grow_geometrically_to_n(n: int) -> None:
    take = Geometric()
    sizes, have = [], 0
    while have < n:
        have += take.count(have, n)
        sizes.append(have)
    assert sizes[-1] == n
    assert len(sizes) <= 5
    assert all(b <= 2 * a + 1 for a, b in pairwise(sizes))
    assert Fixed(3).count(n - 1, n) == 1


@pytest.mark.parametrize("n", [10, 100, 300])
def test_sweeps_with_the_trace_objective(n: int) -> None:
    """At most 6 with the final one: one gather for the first round, four looks."""
    X = data_sets.gaussian_mixture(1500, 4).X
    selection, session = select(as_rule("few-sweep", objective="trace"), problem_of(X, n=n, kernel=Gaussian(1.0)))
    assert len(selection.basis) == n
    assert len(session.records) + 1 <= 6


@pytest.mark.parametrize("n", [10, 100, 200])
def test_sweeps_with_the_prediction_objective(n: int) -> None:
    """At most 3 with the final one: all its rows are known beforehand and gathered at once."""
    data = data_sets.friedman(2000, 5)
    selection, session = select(as_rule("few-sweep"), problem_of(data.X, data.y, n=n, kernel=Gaussian(1.0)))
    assert len(selection.basis) == n
    assert len(session.records) + 1 <= 3


def test_a_non_stationary_kernel_takes_one_sweep_more() -> None:
    """Without a constant diagonal the first draw looks too."""
    X = data_sets.friedman(2000, 5).X
    problem = problem_of(X, n=40, kernel=Polynomial(degree=3))
    _, session = select(as_rule("few-sweep", objective="trace"), problem)
    assert len(session.records) + 1 <= 6


def test_trace_beats_random_pivots_where_clusters_are_rare() -> None:
    X = data_sets.rare_clusters(4000).X
    problem = problem_of(X, n=100, kernel=Gaussian(1.5))

    def left(rule: str, seed: int) -> float:
        options = type(problem)(problem.table, problem.kernel, 100, seed=seed)
        basis = select(as_rule(rule, objective="trace", has_targets=False), options)[0].basis
        return float(basis.residual(X).sum())

    ours = np.median([left("few-sweep", seed) for seed in range(3)])
    theirs = np.median([left("rpcholesky", seed) for seed in range(5)])
    assert ours <= 0.9 * theirs


def test_certificates_are_exact() -> None:
    X = data_sets.gaussian_mixture(400, 3).X
    selection, _ = select(as_rule("few-sweep", objective="trace"), problem_of(X, n=64))
    K = naive.gaussian(X, X, 1.0)
    assert [record.start for record in selection.rounds] == [0, 4, 8, 16, 32]
    for record in selection.rounds:
        expected = naive.residual_trace(K, selection.basis.rows[: record.start].tolist())
        assert record.residual_trace == pytest.approx(expected, rel=1e-9)


def test_prediction_beats_uniform_on_held_out_rows() -> None:
    data, test = data_sets.smooth_target_table(3000, 10), data_sets.smooth_target_table(1000, 10, start=3000)
    kernel = Gaussian(median_lengthscale(data.X, Gaussian(1.0)))

    def error(rule: str, seed: int) -> float:
        problem = problem_of(data.X, data.y, n=100, kernel=kernel, seed=seed)
        basis = select(as_rule(rule), problem)[0].basis
        G, G_test = basis.features(data.X), basis.features(test.X)
        beta = np.linalg.solve(G.T @ G + 0.1 * np.eye(len(basis)), G.T @ data.y)
        return float(np.sqrt(np.mean((G_test @ beta - test.f) ** 2)))

    ours = np.median([error("few-sweep", seed) for seed in range(2)])
    theirs = np.median([error("uniform", seed) for seed in range(5)])
    assert ours <= 0.9 * theirs


@pytest.mark.parametrize("objective", ["trace", "prediction", 0.5])
def test_duplicate_rows_end_with_the_rank(objective: str | float) -> None:
    X = np.repeat(np.random.default_rng(0).standard_normal((11, 2)), 30, axis=0)
    selection, _ = select(as_rule("few-sweep", objective=objective), problem_of(X, X[:, 0], n=60))
    assert selection.ended == "rank"
    assert len(selection.basis) == 11
    assert len(np.unique(selection.basis.points, axis=0)) == 11


def test_a_linear_kernel_has_the_rank_of_the_features() -> None:
    X = np.random.default_rng(0).standard_normal((300, 4))
    selection, _ = select(as_rule("few-sweep", objective="trace"), problem_of(X, n=20, kernel=Linear()))
    assert selection.ended == "rank"
    assert len(selection.basis) == 4
    assert selection.basis.residual(X).max() < 1e-9


@pytest.mark.parametrize("objective", ["trace", "prediction"])
@pytest.mark.parametrize("tol", [0.3, 0.05])
def test_a_tolerance_ends_with_its_certificate(objective: str, tol: float) -> None:
    data = data_sets.gaussian_mixture(1000, 3)
    problem = problem_of(data.X, data.y, n=400, tol=tol)
    selection, _ = select(as_rule("few-sweep", objective=objective), problem)
    assert selection.ended == "tolerance"
    n = len(selection.basis)
    assert n < 400
    assert selection.basis.residual(data.X).sum() <= tol * 1000
    # And not much later than it could have: two thirds of the functions do not hold it.
    assert selection.basis.take(np.arange(2 * n // 3)).residual(data.X).sum() > tol * 1000


def test_equal_seeds_equal_picks_other_seeds_others() -> None:
    data = data_sets.friedman(2000, 5)
    for objective in ("trace", "prediction"):
        rows = [
            select(as_rule("few-sweep", objective=objective), problem_of(data.X, data.y, n=40, seed=seed))[0].basis.rows
            for seed in (1, 1, 2)
        ]
        np.testing.assert_array_equal(rows[0], rows[1])
        assert set(rows[0].tolist()) != set(rows[2].tolist())


def test_several_targets_and_class_indicators() -> None:
    data = data_sets.friedman(2000, 5)
    Y = np.column_stack([data.y, -data.y, data.X[:, 0]])
    selection, _ = select(as_rule("few-sweep"), problem_of(data.X, Y, n=30, kernel=Gaussian(1.0)))
    assert len(set(selection.basis.rows.tolist())) == 30


def test_objectives() -> None:
    assert [as_kappa(value) for value in ("trace", "prediction", 0.25, 1, 0)] == [0.0, 1.0, 0.25, 1.0, 0.0]
    for bad in ("speed", -0.1, 1.1, True, None, float("nan")):
        with pytest.raises(ParameterError):
            as_kappa(bad)  # type: ignore[arg-type]


def test_rules_by_name() -> None:
    rule = as_rule("few-sweep", objective="prediction", has_targets=False)
    assert isinstance(rule, Greedy)
    assert rule.score == FunctionSpace()  # without targets there is nothing to predict
    assert as_rule(rule) is rule
    assert isinstance(as_rule("rpcholesky", block=1), RPCholesky)
    with pytest.raises(ParameterError, match="few-sweep, sgma"):
        as_rule("magic")
    with pytest.raises(ParameterError, match="pool"):
        as_rule("sgma", pool="deep")


def test_in_a_metric_fewer_rows_of_those_that_were_fetched_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are fetched before it is known whether there is a metric: no further sweep, and scoring rows in order."""
    monkeypatch.setattr(_draws, "_FEW_ROWS", 1000)
    data = data_sets.friedman(6000, 5)
    rule = as_rule("few-sweep")
    problem = problem_of(data.X, data.y, n=400)
    fetched = rule.prefetch(problem)
    used = {}
    for in_metric in (False, True):
        each = replace(problem, in_metric=in_metric)
        np.testing.assert_array_equal(rule.prefetch(each), fetched)
        session = Session(ThreadExecutor(1))
        cache = RowCache(each.table, session)
        cache.fetch(fetched)
        drawn = rule.draw.draw(each, session, cache, each.empty_basis(), 100, 1)  # type: ignore[attr-defined]
        assert len(session.records) == 1
        assert drawn.scoring is not None
        used[in_metric] = len(drawn.pool), drawn.scoring.n_rows
    assert used == {False: (1200, 4500), True: (900, 2200)}


@pytest.mark.parametrize("exponent", [-400, 400, *(pytest.param(each, marks=pytest.mark.slow) for each in (-75, 65))])
def test_the_unit_of_the_targets_changes_no_pick(exponent: int) -> None:
    """Candidates are scored in float32, in which squares of such targets are 0 or infinite."""
    data = data_sets.friedman(800, 5)
    Y = np.column_stack([data.y, data.X[:, 0]])

    def picked(Y: NDArray[np.float64]) -> Selection:
        problem = problem_of(data.X, Y, n=40, kernel=Gaussian(1.0))
        return select(as_rule("few-sweep"), replace(problem, centre=Y.mean(axis=0), scale=Y.std(axis=0)))[0]

    wanted = picked(Y)
    for units in ([2.0**exponent, 2.0**exponent], [1.0, 2.0**exponent]):
        found = picked(Y * units)
        np.testing.assert_array_equal(found.basis.rows, wanted.basis.rows)
        np.testing.assert_allclose(found.gains, wanted.gains, rtol=1e-6)


def test_columns_and_sums_of_a_round_are_freed_before_the_basis_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their points are packed: the plan has no room for them beside those of the grown basis."""
    made: list[weakref.ref[object]] = []
    alive: list[bool] = []
    of_round, append = Greedy._columns, Basis.append

    def columns(self: Greedy, problem: Problem, basis: Basis, pool: Basis) -> PoolColumns:
        found = of_round(self, problem, basis, pool)
        made.append(weakref.ref(found))
        return found

    def grown(self: Basis, *given: NDArray[np.float64]) -> object:
        alive.extend(each() is not None for each in made)
        return append(self, *given)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(Greedy, "_columns", columns)
    monkeypatch.setattr(Basis, "append", grown)
    select(as_rule("few-sweep"), problem_of(data_sets.gaussian_mixture(300, 2).X, n=20, kernel=Gaussian(1.0)))
    assert alive
    assert not any(alive)
