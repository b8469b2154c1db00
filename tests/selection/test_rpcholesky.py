"""Randomly pivoted Cholesky in blocks: distributed exactly as one pivot at a time. And uniform Nystroem."""

from __future__ import annotations

import itertools

import naive
import numpy as np
import pytest
from problems import problem_of, select
from scipy import stats

from streamkernel.kernels import Gaussian
from streamkernel.selection import RPCholesky, as_rule
from streamkernel.selection.rpcholesky import accept, proposals_with_replacement

SIX = np.array([[0.0, 0.0], [0.4, 0.1], [1.0, -0.5], [1.1, -0.4], [3.0, 3.0], [0.2, 2.0]])


def test_accepted_proposals_are_those_of_the_definition() -> None:
    X = np.random.default_rng(0).standard_normal((30, 2))
    K = naive.gaussian(X, X, 1.0)
    rng = np.random.default_rng(1)
    for _ in range(10):
        basis = rng.choice(30, 4, replace=False).tolist()
        proposals, uniforms = rng.integers(0, 30, 12), rng.random(12)
        rows, inverse = np.unique(proposals, return_inverse=True)
        H = naive.residual(K, basis)[np.ix_(rows, rows)]
        found = rows[accept(H, inverse, uniforms, 1e-12)]
        assert found.tolist() == naive.rpcholesky_block(K, basis, proposals, uniforms)


def test_blocks_accepted_whole_skip_only_dependent_rows() -> None:
    X = np.repeat(SIX, 2, axis=0)
    assert accept(naive.gaussian(X, X, 1.0), np.arange(12), None, 1e-12).tolist() == [0, 2, 4, 6, 8, 10]


def test_proposals_are_independent_draws() -> None:
    """From a successive sample without replacement: every pair (first, second) has probability p_i p_j."""
    p = np.array([0.5, 0.3, 0.15, 0.05])
    rng = np.random.default_rng(0)
    counts = np.zeros((4, 4))
    runs = 5000
    for _ in range(runs):
        order = np.argsort(rng.exponential(size=4) / p)
        drawn = order[proposals_with_replacement(p[order], 1.0, 2, rng)]
        counts[drawn[0], drawn[1]] += 1
    expected = runs * np.outer(p, p)
    assert stats.chisquare(counts.ravel(), expected.ravel()).pvalue > 1e-3


@pytest.mark.parametrize("block", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_distribution_on_six_points(block: int) -> None:
    """ALGORITHMS 15, property 22: chi-square of ordered triples, the rule itself, look and all."""
    rule = RPCholesky(block=block)
    draws = [select(rule, problem_of(SIX, n=3, seed=seed))[0].basis.rows for seed in range(500)]
    statistic = naive.chi_square(draws, naive.rpcholesky_distribution(naive.gaussian(SIX, SIX, 1.0), 3))
    assert abs(statistic) < 4.0


@pytest.mark.parametrize("block", [pytest.param(1, marks=pytest.mark.slow), None])
def test_mean_trace_on_the_card(block: int | None) -> None:
    """ALGORITHMS 12.1: 12.6734 after six pivots, a mean of 200 runs itself."""
    card = naive.card()
    rule = RPCholesky(block=block)
    left = [select(rule, problem_of(card.X, n=6, seed=seed))[0].basis.residual(card.X).sum() for seed in range(200)]
    assert abs(np.mean(left) - 12.6734) < 4 * np.std(left) * np.sqrt(2 / 200)


def test_accept_reject_distribution_on_six_points() -> None:
    """The same without the engine, in more draws."""
    K = naive.gaussian(SIX, SIX, 1.0)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(5000):
        picks: list[int] = []
        while len(picks) < 3:
            d = residual_of(picks)
            order = np.argsort(rng.exponential(size=6) / np.maximum(d, 1e-300))[: np.count_nonzero(d)]
            proposals = proposals_with_replacement(d[order], d.sum(), min(4, len(order)), rng)
            H = block_of(picks)[np.ix_(order, order)]
            picks += order[accept(H, proposals, rng.random(len(proposals)), 1e-12)].tolist()
        draws.append(picks[:3])
    assert abs(naive.chi_square(draws, naive.rpcholesky_distribution(K, 3))) < 4.0


_RESIDUALS = {
    picks: naive.residual(naive.gaussian(SIX, SIX, 1.0), picks)
    for t in range(3)
    for picks in itertools.permutations(range(6), t)
}


def block_of(picks: list[int]) -> naive.Array:
    return _RESIDUALS[tuple(picks)]


def residual_of(picks: list[int]) -> naive.Array:
    d = np.maximum(np.diag(block_of(picks)), 0)
    d[picks] = 0
    return d


def test_looks_are_few_and_the_certificates_exact() -> None:
    X = np.random.default_rng(0).standard_normal((500, 3))
    selection, session = select(as_rule("rpcholesky", block=25), problem_of(X, n=50))
    K = naive.gaussian(X, X, 1.0)
    assert len(selection.basis) == 50
    assert 2 <= len(session.records) <= 8
    for record in selection.rounds:
        expected = naive.residual_trace(K, selection.basis.rows[: record.start].tolist())
        np.testing.assert_allclose(record.residual_trace, expected, rtol=1e-9)


def test_the_default_block_is_a_tenth() -> None:
    X = np.random.default_rng(0).standard_normal((300, 4))
    selection, _ = select(as_rule("rpcholesky"), problem_of(X, n=100))
    assert {record.candidates for record in selection.rounds} == {10}
    whole, _ = select(as_rule("rpcholesky-block"), problem_of(X, n=100))
    assert len(whole.rounds) == 10


@pytest.mark.parametrize("rule", ["rpcholesky", "rpcholesky-block"])
def test_exhausted_rank_ends_it(rule: str) -> None:
    X = np.repeat(np.random.default_rng(0).standard_normal((9, 2)), 30, axis=0)
    selection, _ = select(as_rule(rule), problem_of(X, n=40))
    assert selection.ended == "rank"
    assert len(selection.basis) == 9


def test_a_tolerance_ends_it() -> None:
    X = np.random.default_rng(0).standard_normal((400, 2))
    selection, _ = select(as_rule("rpcholesky"), problem_of(X, n=200, tol=0.05, kernel=Gaussian(2.0)))
    assert selection.ended == "tolerance"
    assert len(selection.basis) < 200
    K = naive.gaussian(X, X, 2.0)
    assert naive.residual_trace(K, selection.basis.rows.tolist()) <= 0.05 * 400


# ---------------------------------------------------------------------------------------------------------- uniform
def test_uniform_rows_are_uniform() -> None:
    X = np.random.default_rng(0).standard_normal((12, 2))
    counts = np.zeros(12)
    for seed in range(600):
        rows = as_rule("uniform").prefetch(problem_of(X, n=3, seed=seed))
        assert len(set(rows.tolist())) == 3
        counts[rows] += 1
    # Without replacement the counts vary less than multinomial ones: by (m - n) / (m - 1).
    statistic = ((counts - 150) ** 2 / 150).sum() * 11 / 9
    assert stats.chi2(11).sf(statistic) > 1e-3


def test_uniform_leaves_dependent_rows_out() -> None:
    X = np.repeat(np.random.default_rng(0).standard_normal((5, 2)), 10, axis=0)
    selection, session = select(as_rule("uniform"), problem_of(X, n=30))
    assert selection.ended == "rank"
    assert len(selection.basis) == 5
    assert len(session.records) == 1


def test_row_numbers_of_a_slice_stay_those_of_the_table() -> None:
    X = np.random.default_rng(0).standard_normal((100, 2))
    whole = problem_of(X, n=5)
    part = type(whole)(whole.table.slice(40, 80), whole.kernel, 5)
    for rule in ("uniform", "sgma", "rpcholesky", "few-sweep"):
        selection, _ = select(as_rule(rule, has_targets=False), part)
        rows = selection.basis.rows
        assert ((rows >= 40) & (rows < 80)).all()
        np.testing.assert_array_equal(selection.basis.points, X[rows])
