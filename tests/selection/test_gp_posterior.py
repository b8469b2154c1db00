"""Sparse greedy Gaussian processes: the exact gain of the posterior, and the gap that certifies and stops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import GivenDraw, basis_of, cut_session, pool_sums, problem_of, select
from strategies import cuts

from streamkernel.engine import Session, Silent, ThreadExecutor
from streamkernel.errors import ParameterError
from streamkernel.selection import Greedy, Problem, as_rule
from streamkernel.selection._gp_posterior import PosteriorGreedy, grown_sums
from streamkernel.selection.rounds import Take
from streamkernel.table import open_table

CARD = naive.card()
START = (0, 5, 9)
POOL = tuple(i for i in CARD.pool if i not in START)


def rule(**options: Any) -> PosteriorGreedy:
    made = as_rule("gp-posterior", **{"ridge": 0.1, **options})
    assert isinstance(made, PosteriorGreedy)
    return made


def gaps_of(picks: Any, rho: float = 0.1, extra: Any = ()) -> Any:
    """Gap and relative gap after each pick, by Qp and Qd; the smaller of the sparse one and the trace form."""
    K, y, out = CARD.K, CARD.y, []
    for n in range(1, len(picks) + 1):
        chosen = [int(i) for i in picks[:n]]
        a = naive.sparse_primal(K, y, rho, chosen)
        u = naive.sparse_dual(K, y, rho, sorted({*chosen, *extra}))
        r = y - K @ a
        trace = naive.residual_trace(K, chosen) * (r @ r) / (2 * rho)
        gap = min(naive.duality_gap(K, y, rho, a, u), trace)
        out.append((gap, 2 * gap / (2 * abs(naive.primal(K, y, rho, a)) + gap)))
    return np.array(out).T


# ------------------------------------------------------------------------------------------------------ printed numbers
def test_picks_and_gains_of_the_card() -> None:
    """ALGORITHMS 1.3: from [0, 5, 9] and that pool 10, 19, 3, 31 with gains 11.7421 .. .100486, J to 3.39119."""
    draw = GivenDraw(subsets=(*((i,) for i in START), *[POOL] * 4), all_rows=True)
    found, session = select(replace(rule(), draw=draw), problem_of(CARD.X, CARD.y, n=7))
    assert found.basis.rows.tolist() == [*START, 10, 19, 3, 31]
    gains = found.gains * (CARD.y @ CARD.y)
    np.testing.assert_allclose(gains[3:], [11.7421, 2.14361, 0.210015, 0.100486], rtol=4e-6)
    assert found.gaps is not None
    np.testing.assert_allclose(found.gaps.objective[[2, 6]], [17.5874, 3.39119], rtol=3e-6)
    np.testing.assert_allclose(-np.diff(found.gaps.objective), gains[1:], rtol=1e-9)
    # Gathered once, then a sweep a pick: the gap costs none.
    assert len(session.records) == 1 + 7
    np.testing.assert_allclose([found.gaps.gap, found.gaps.relative], gaps_of(found.basis.rows), rtol=1e-8)


def test_several_picks_of_one_sweep_are_those_of_several() -> None:
    subsets = (*((i,) for i in START), POOL)
    draw = GivenDraw(subsets=subsets, all_rows=True)

    class OneThenFour(Take):
        def count(self, have: int, n: int) -> int:
            return 1 if have < 3 else 4

    found, session = select(replace(rule(), draw=draw, take=OneThenFour()), problem_of(CARD.X, CARD.y, n=7))
    assert found.basis.rows.tolist() == [*START, 10, 19, 3, 31]
    assert len(session.records) == 1 + 4
    assert found.gaps is not None
    np.testing.assert_allclose(found.gaps.gap, gaps_of(found.basis.rows)[0], rtol=1e-8)
    assert [record.stop for record in found.rounds] == [1, 2, 3, 7]


# ------------------------------------------------------------------------------------------------------------- the stop
@pytest.mark.parametrize(
    ("picks", "gap"),
    [(1, 0.05), *((4, gap) for gap in (0.5, 0.05, 0.04, 0.01))]
    + [pytest.param(1, gap, marks=pytest.mark.slow) for gap in (0.5, 0.04, 0.01)],
)
def test_it_stops_at_the_first_basis_whose_gap_is_small(picks: int, gap: float) -> None:
    found, _ = select(rule(gap=gap, picks=picks), problem_of(CARD.X, CARD.y, n=30))
    assert found.gaps is not None
    assert len(found.gaps) == len(found.basis) == len(found.gains)
    np.testing.assert_allclose(found.gaps.relative, gaps_of(found.basis.rows)[1], rtol=1e-6, atol=1e-9)
    assert found.ended == "tolerance"
    assert found.gaps.relative[-1] <= gap
    assert (found.gaps.relative[:-1] > gap).all()
    everything, _ = select(rule(picks=picks), problem_of(CARD.X, CARD.y, n=30))
    assert everything.basis.rows.tolist()[: len(found.basis)] == found.basis.rows.tolist()
    assert (everything.ended, len(everything.basis)) == ("size", 30)


def test_the_gap_bounds_the_distance_to_the_full_fit() -> None:
    found, _ = select(rule(), problem_of(CARD.X, CARD.y, n=25))
    full = 0.1 * CARD.y @ np.linalg.solve(CARD.K + 0.1 * np.eye(40), CARD.y)
    assert found.gaps is not None
    assert ((found.gaps.objective - full) / 2 <= found.gaps.gap + 1e-9).all()
    assert (found.gaps.objective >= full - 1e-9).all()


def test_more_dual_rows_stop_earlier() -> None:
    few, many = (
        select(rule(gap=0.02, dual_rows=rows), problem_of(CARD.X, CARD.y, n=30, seed=2))[0] for rows in (0, 35)
    )
    assert len(many.basis) < len(few.basis)
    extra = rule(dual_rows=35)._dual(problem_of(CARD.X, CARD.y, n=30, seed=2)).tolist()
    assert many.gaps is not None
    assert len(set(extra)) == 35
    np.testing.assert_allclose(many.gaps.gap, gaps_of(many.basis.rows, extra=extra)[0], rtol=1e-6)


def test_a_tolerance_of_the_trace_costs_no_sweep_and_is_met_exactly() -> None:
    found, session = select(rule(picks=3), problem_of(CARD.X, CARD.y, n=30, tol=0.25))
    left = [naive.residual_trace(CARD.K, found.basis.rows[:n]) / 40 for n in range(len(found.basis) + 1)]
    assert found.ended == "tolerance"
    assert left[-1] <= 0.25 < left[-2]
    assert len(session.records) == 1 + len(found.rounds)
    for record in found.rounds:
        assert record.residual_trace == pytest.approx(40 * left[record.start], rel=1e-9)


def test_units_of_several_targets() -> None:
    """Each in units of its own spread: the sum of what each is alone, and no matter what the units are."""
    Y = np.column_stack([CARD.y, CARD.t])
    draw = GivenDraw(subsets=tuple((int(i),) for i in POOL), all_rows=True)
    made = replace(rule(), draw=draw)

    def gaps(values: Any, scale: Any) -> Any:
        problem = Problem(
            open_table(CARD.X, values), problem_of(CARD.X, n=1).kernel, 9, centre=np.zeros(len(scale)), scale=scale
        )
        return select(made, problem)[0].gaps

    together = gaps(Y * [1.0, 1e4], np.array([2.0, 3e4]))
    alone = [gaps(y / s, np.ones(1)) for y, s in zip(Y.T, (2.0, 3.0), strict=True)]
    np.testing.assert_allclose(together.sparse, alone[0].sparse + alone[1].sparse, rtol=1e-8)
    np.testing.assert_allclose(together.objective, alone[0].objective + alone[1].objective, rtol=1e-8)


def test_weights_are_repeated_rows() -> None:
    weights = np.array([1.0, 2.0] * 20)
    twice = np.repeat(np.arange(40), weights.astype(int))
    kernel = problem_of(CARD.X, n=1).kernel
    draw = GivenDraw(subsets=tuple((int(i),) for i in POOL), all_rows=True)
    options = {"centre": np.zeros(1), "scale": np.ones(1)}
    weighted = Problem(open_table(CARD.X, CARD.y, weights=weights), kernel, 9, **options)
    found, _ = select(replace(rule(), draw=draw), weighted)
    first = tuple((int(np.flatnonzero(twice == i)[0]),) for i in POOL)
    repeated = Problem(open_table(CARD.X[twice], CARD.y[twice]), kernel, 9, **options)
    # The dual has both copies of a row of weight 2.
    K, y = kernel(CARD.X[twice]), CARD.y[twice]
    other, _ = select(replace(rule(), draw=replace(draw, subsets=first)), repeated)
    assert found.gaps is not None
    assert other.gaps is not None
    np.testing.assert_allclose(found.gaps.objective, other.gaps.objective, rtol=1e-8)
    np.testing.assert_allclose(found.gaps.trace, other.gaps.trace, rtol=1e-8)
    for n in range(1, 10):
        J = [at for at, row in enumerate(twice) if row in POOL[:n]]
        a = naive.sparse_primal(K, y, 0.1, [i for (i,) in first[:n]])
        gap = naive.duality_gap(K, y, 0.1, a, naive.sparse_dual(K, y, 0.1, J))
        assert found.gaps.sparse[n - 1] == pytest.approx(gap, rel=1e-7)


# ---------------------------------------------------------------------------------------------------------- how it runs
def test_sums_of_the_grown_basis() -> None:
    Y = np.column_stack([CARD.y, CARD.t])
    sums = pool_sums(CARD.X, Y, START, POOL)
    order = np.array([4, 0, 7])
    H, g = grown_sums(sums, order)
    G = basis_of(CARD.X, [*START, *(POOL[i] for i in order)]).features(CARD.X)
    np.testing.assert_allclose(H, G.T @ G, atol=1e-10)
    np.testing.assert_allclose(g, G.T @ Y, atol=1e-10)


@settings(max_examples=5)
@given(chunks=cuts(40), block_rows=st.sampled_from([1, 7, 40]))
def test_any_chunking_stops_at_the_same_basis(chunks: tuple[int, ...], block_rows: int) -> None:
    made = rule(gap=0.04, picks=2, candidates=5, dual_rows=5)
    whole, _ = select(made, problem_of(CARD.X, CARD.y, n=20))
    cut, _ = select(made, problem_of(CARD.X, CARD.y, n=20), cut_session(chunks, block_rows))
    assert cut.basis.rows.tolist() == whole.basis.rows.tolist()
    assert cut.gaps is not None
    assert whole.gaps is not None
    np.testing.assert_allclose(cut.gaps.gap, whole.gaps.gap, rtol=1e-7)


def test_the_ridge_is_chosen_where_none_is_given() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(600)
    found, _ = select(as_rule("gp-posterior", candidates=10), problem_of(X, y, n=12))
    fixed, _ = select(as_rule("gp-posterior", candidates=10, ridge=0.3), problem_of(X, y, n=12))
    assert found.basis.rows[0] == fixed.basis.rows[0]
    assert found.gains[0] == fixed.gains[0]
    assert (found.gains[2:] != fixed.gains[2:]).all()
    assert found.gaps is not None
    assert found.gaps.relative[-1] < found.gaps.relative[0]


def test_too_few_independent_rows() -> None:
    X = np.repeat(np.random.default_rng(0).standard_normal((5, 2)), 4, axis=0)
    found, _ = select(rule(candidates=8), problem_of(X, X[:, 0], n=12))
    assert found.ended == "rank"
    assert len(found.basis) == 5
    assert found.gaps is not None
    assert found.gaps.gap[-1] >= 0


def test_the_first_picks_are_a_selection_of_their_own_and_the_gap_is_told() -> None:
    told: list[str] = []

    class Watcher(Silent):
        def note(self, text: str) -> None:
            told.append(text)

    session = Session(ThreadExecutor(1), progress=Watcher())
    found, _ = select(rule(), problem_of(CARD.X, CARD.y, n=4), session)
    assert [text.split(",")[0] for text in told] == [f"{k} of 4 basis functions" for k in (1, 2, 3, 4)]
    few = found.first(2, "gap")
    assert few.gaps is not None
    assert len(few.gaps) == 2


def test_without_targets_it_follows_the_trace_and_knows_no_gap() -> None:
    plain = as_rule("gp-posterior", has_targets=False, candidates=7)
    assert isinstance(plain, Greedy)
    assert not isinstance(plain, PosteriorGreedy)
    found, _ = select(plain, problem_of(CARD.X, n=5))
    same, _ = select(as_rule("sgma", candidates=7), problem_of(CARD.X, n=5))
    assert found.basis.rows.tolist() == same.basis.rows.tolist()
    assert found.gaps is None
    with pytest.raises(ParameterError, match="gap compares risks and needs targets"):
        as_rule("gp-posterior", has_targets=False, gap=0.1)


@pytest.mark.parametrize("options", [{"gap": -1.0}, {"ridge": 0.0}, {"dual_rows": -1}, {"picks": 0}, {"quantile": 1.0}])
def test_what_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(options))):
        as_rule("gp-posterior", **options)
