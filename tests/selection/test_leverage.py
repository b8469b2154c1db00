"""Ridge leverage scores: the card's numbers, draws in proportion to them, and as many sweeps as planned."""

from __future__ import annotations

import pickle
from typing import Any

import dask.array as da
import data_sets
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import basis_of, blocks, problem_of, select
from scipy import stats
from strategies import chunkings, few_examples, rows, seeds

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian, Kernel, Linear, Polynomial
from streamkernel.reductions import row_uniforms
from streamkernel.reductions.pools.leverage import LeverageDraw, RidgeLeverage, SampledKernel
from streamkernel.selection import Problem, Selection, Uniform
from streamkernel.selection._leverage import Leverage, matching_ridge
from streamkernel.table import open_table

CARD = naive.card()
SGMA = [17, 4, 27, 33, 29, 20]


def sampled(X: Any, S: Any, ridge: float, probabilities: Any = None, kernel: Kernel | None = None) -> SampledKernel:
    p = np.ones(len(list(S))) if probabilities is None else probabilities
    return SampledKernel(basis_of(X, S, kernel), p, ridge)


def run(X: Any, n: int, *, threads: int = 1, kernel: Any = None, seed: int = 0, **options: Any) -> Selection:
    """What the rule picks; the plan knew the number of sweeps."""
    rule, problem = Leverage(**options), problem_of(X, n=n, kernel=kernel, seed=seed)
    selection, session = select(rule, problem, Session(ThreadExecutor(threads)))
    assert len(session.records) == sum(step.times for step in rule.steps(problem) if step.where == "sweep")
    return selection


# ------------------------------------------------------------------------------------------------------------ scores
def test_the_numbers_of_the_card() -> None:
    exact = naive.leverage_scores(CARD.K, 0.5)
    assert exact.sum() == pytest.approx(10.2801, rel=6e-6)
    np.testing.assert_allclose(exact[:3], [0.319836, 0.283959, 0.212217], rtol=6e-6)
    np.testing.assert_allclose(sampled(CARD.X, range(40), 0.5).scores(CARD.X), exact, rtol=1e-10)
    estimated = naive.leverage_scores(CARD.K, 0.5, SGMA)
    np.testing.assert_allclose(estimated[:3], [1.1318, 1.05825, 0.919765], rtol=6e-6)
    found = sampled(CARD.X, SGMA, 0.5).scores(CARD.X)
    np.testing.assert_allclose(found, np.minimum(estimated, 1.0), rtol=1e-10)


@given(X=rows(min_rows=2, max_rows=30, dtype=np.float64), data=st.data())
def test_estimates_are_the_oracles_and_no_less_than_the_scores(X: Any, data: st.DataObject) -> None:
    ridge = data.draw(st.sampled_from([1e-3, 0.1, 1.0, 30.0]))
    S = sorted(data.draw(st.sets(st.integers(0, len(X) - 1), min_size=1)))
    K = naive.gaussian(X, X)
    found = sampled(X, S, ridge).scores(X)
    np.testing.assert_allclose(found, np.minimum(naive.leverage_scores(K, ridge, S), 1.0), rtol=1e-8, atol=1e-10)
    assert (found >= naive.leverage_scores(K, ridge) - 1e-9).all()
    p = np.random.default_rng(len(X)).uniform(0.01, 1.0, len(S))
    weighted = np.clip(naive.leverage_scores(K, ridge, S, p), 0.0, 1.0)
    np.testing.assert_allclose(sampled(X, S, ridge, p).scores(X), weighted, rtol=1e-7, atol=1e-9)


def test_a_sample_drawn_by_its_scores_stands_for_all_rows() -> None:
    """With its probabilities: the scores come within a small factor, where without they are far too large."""
    X = np.random.default_rng(0).standard_normal((1500, 3))
    K = naive.gaussian(X, X, 1.5)
    exact = naive.leverage_scores(K, 1.0)
    work = RidgeLeverage(sampled(X, range(1500), 1.0, kernel=Gaussian(1.5)), 400, 0, (1, 1))
    drawn = work.finalize(work.map_block(next(blocks(X, None, [1500]))))
    assert drawn.total == pytest.approx(exact.sum(), rel=1e-9)
    with_p, without = (
        sampled(X, drawn.rows, 1.0, p, Gaussian(1.5)).scores(X) for p in (drawn.probabilities, np.ones(400))
    )
    assert 0.6 < np.median(with_p / exact) < 1.6
    assert without.sum() > 1.2 * with_p.sum()


def test_pickled_it_sends_no_factor() -> None:
    kernel = sampled(CARD.X, SGMA, 0.5)
    expected = kernel.scores(CARD.X)
    again = pickle.loads(pickle.dumps(kernel))
    assert "L" not in again.__dict__
    np.testing.assert_array_equal(again.scores(CARD.X), expected)


# ------------------------------------------------------------------------------------------------------------- draws
def draw_of(X: Any, work: RidgeLeverage, chunks: Any) -> LeverageDraw:
    states = [work.map_block(block) for block in blocks(X, None, chunks)]
    state = states[0]
    for other in states[1:]:
        state = work.combine(state, other)
    return work.finalize(state)


@given(seed=seeds, count=st.integers(1, 45), share=st.sampled_from([0.3, 1.0]), chunks=chunkings(40))
def test_draws_are_the_keys_of_the_rows(seed: int, count: int, share: float, chunks: Any) -> None:
    found = draw_of(CARD.X, RidgeLeverage(sampled(CARD.X, SGMA, 0.5), count, seed, (11, 2), share), chunks)
    asked = np.flatnonzero(row_uniforms(seed, (11,), 0, 40)[:, 0] < share) if share < 1 else np.arange(40)
    tau = np.minimum(naive.leverage_scores(CARD.K, 0.5, SGMA), 1.0)
    keys = naive.a_res_keys(row_uniforms(seed, (11, 2), 0, 40)[:, 0], tau)
    order = asked[np.argsort(-keys[asked])]
    assert found.scored == len(asked)
    assert found.total == pytest.approx(tau[asked].sum())
    assert found.rows.tolist() == order[:count].tolist()
    np.testing.assert_array_equal(found.X, CARD.X[found.rows])
    np.testing.assert_allclose(found.scores, tau[found.rows], rtol=1e-9)
    chance = 1.0 - np.exp(tau[found.rows] * keys[order[count]]) if count < len(asked) else np.ones(len(found.rows))
    np.testing.assert_allclose(found.probabilities, chance, rtol=1e-9)


def test_probabilities_make_sums_unbiased() -> None:
    """Horvitz-Thompson: sum of f / p over the rows drawn estimates the sum of f."""
    f = np.arange(40.0)
    estimates = []
    sample = sampled(CARD.X, SGMA, 0.5)
    for seed in range(600):
        drawn = draw_of(CARD.X, RidgeLeverage(sample, 12, seed, (11, 2)), [40])
        estimates.append((f[drawn.rows] / drawn.probabilities).sum())
    error = np.mean(estimates) - f.sum()
    assert abs(error) < 4 * np.std(estimates) / np.sqrt(600)
    assert np.std(estimates) < f.sum()


def test_first_draws_follow_the_scores() -> None:
    X = CARD.X[:6]
    tau = np.minimum(naive.leverage_scores(CARD.K[:6, :6], 0.5, [0, 1]), 1.0)
    counts, sample = np.zeros(6), sampled(X, [0, 1], 0.5)
    for seed in range(1000):
        counts[draw_of(X, RidgeLeverage(sample, 1, seed, (11, 2)), [6]).rows[0]] += 1
    assert stats.chisquare(counts, 1000 * tau / tau.sum()).pvalue > 1e-3


# -------------------------------------------------------------------------------------------------------------- ridge
@pytest.mark.parametrize("size", [60, 300, 3000])
def test_at_the_matching_ridge_the_estimates_sum_to_the_target(size: int) -> None:
    X = np.random.default_rng(0).standard_normal((3000, 3))
    sample = basis_of(X, range(60))
    ridge = matching_ridge(sample, np.ones(60), X[60:1060], size, 40.0)
    total = SampledKernel(sample, np.ones(60), ridge).scores(X[60:]).mean() * size
    assert total == pytest.approx(40.0, rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_on_every_level_they_sum_to_about_n(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[LeverageDraw] = []
    finalize = RidgeLeverage.finalize
    monkeypatch.setattr(RidgeLeverage, "finalize", lambda *given: drawn.append(finalize(*given)) or drawn[-1])
    run(data_sets.gaussian_mixture(3000, 4).X, 50, seed=seed, in_memory=8)
    assert [level.scored for level in drawn][:3] == [100, 200, 400]
    for level, size in zip(drawn[3:], [800, 1600, 3000], strict=True):
        assert level.scored == pytest.approx(size, rel=0.15)
    for level in drawn:
        assert level.total == pytest.approx(50, rel=0.3)


# --------------------------------------------------------------------------------------------------------- the rule
def test_a_given_ridge_is_used_on_every_level() -> None:
    """Where the levels fit in memory, the last draw is that of the oracle's scores and the rows' own keys."""
    X = np.random.default_rng(0).standard_normal((300, 2))
    found = run(X, 20, ridge=0.3, growth=100, seed=5)  # one level: the sample is uniform
    first = Leverage(growth=100).prefetch(problem_of(X, n=20, seed=5))[:20]
    tau = np.minimum(naive.leverage_scores(naive.gaussian(X, X), 0.3, first), 1.0)
    keys = naive.a_res_keys(row_uniforms(5, (11, 1), 0, 300)[:, 0], tau)
    assert found.basis.rows.tolist() == np.argsort(-keys)[:20].tolist()


@few_examples(0.25)
@given(seed=seeds, chunk=st.integers(1, 40), threads=st.sampled_from([1, 2]))
def test_any_chunks_and_threads_give_the_same_rows(seed: int, chunk: int, threads: int) -> None:
    X = np.random.default_rng(3).standard_normal((40, 3))
    once = run(X, 4, seed=seed, in_memory=4)
    again = run(da.from_array(X, chunks=(chunk, 3)), 4, seed=seed, in_memory=4, threads=threads)
    assert again.basis.rows.tolist() == once.basis.rows.tolist()
    np.testing.assert_array_equal(X[once.basis.rows], once.basis.points)
    assert len(set(once.basis.rows.tolist())) == 4


def test_other_seeds_draw_other_rows() -> None:
    X = np.random.default_rng(3).standard_normal((500, 3))
    drawn = [set(run(X, 20, seed=seed).basis.rows.tolist()) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_better_than_uniform_where_density_varies() -> None:
    X = data_sets.gaussian_mixture(3000, 4).X

    def left(rule: Any, seed: int) -> float:
        return float(select(rule, problem_of(X, n=100, seed=seed))[0].basis.residual(X).sum())

    ours = np.median([left(Leverage(), seed) for seed in range(3)])
    theirs = np.median([left(Uniform(), seed) for seed in range(3)])
    assert ours < 0.9 * theirs


def test_sweeps_are_one_for_each_level_that_does_not_fit() -> None:
    X = np.zeros((100_000, 1))
    rule = Leverage()
    assert rule._levels(problem_of(X, n=100)) == (
        [200, 400, 800, 1600], [3200, 6400, 12_800, 25_600, 51_200, 100_000]
    )  # fmt: skip
    assert Leverage(growth=4)._levels(problem_of(X, n=100)) == ([400, 1600], [6400, 25_600, 100_000])
    assert rule._levels(problem_of(X[:50], n=50)) == ([], [50])


def test_a_share_of_the_rows_costs_a_share_of_the_work() -> None:
    steps = Leverage().steps(problem_of(np.zeros((100_000, 1)), n=100))
    swept = [step for step in steps if step.name.startswith("leverage") and step.where == "sweep"]
    assert sum(step.flops for step in swept) < 2.1 * swept[-1].flops
    assert max(step.scratch_bytes for step in swept) == swept[-1].scratch_bytes


def test_row_numbers_of_a_slice_stay_those_of_the_table() -> None:
    X = np.random.default_rng(0).standard_normal((100, 2))
    found, _ = select(Leverage(in_memory=2), Problem(open_table(X).slice(40, 90), Gaussian(1.0), 6))
    assert ((found.basis.rows >= 40) & (found.basis.rows < 90)).all()
    np.testing.assert_array_equal(found.basis.points, X[found.basis.rows])


# --------------------------------------------------------------------------------------------------------- poor rows
@pytest.mark.parametrize("ridge", [None, 1e-12, 0.1])
def test_duplicate_rows_end_with_the_rank(ridge: float | None) -> None:
    X = np.tile(np.random.default_rng(0).standard_normal((9, 2)), (30, 1))
    found = run(X, 60, ridge=ridge)
    assert found.ended == "rank"
    assert len(np.unique(found.basis.points, axis=0)) == len(found.basis) == 9


@pytest.mark.parametrize(("kernel", "rank"), [(Linear(), 4), (Polynomial(degree=2), 15)])
def test_kernels_of_low_rank(kernel: Kernel, rank: int) -> None:
    X = np.random.default_rng(0).standard_normal((400, 4))
    found = run(X, 40, kernel=kernel)
    assert (len(found.basis), found.ended) == (rank, "rank")
    assert found.basis.residual(X).max() < 1e-8 * kernel.diagonal(X).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_columns_and_rows_all_alike(dtype: Any) -> None:
    found = run(np.ones((30, 3), dtype), 5)
    assert (len(found.basis), found.ended) == (1, "rank")
    X = np.random.default_rng(0).standard_normal((150, 3)).astype(dtype)
    X[:, 1] = 1e3
    found = run(X, 10)
    assert (len(found.basis), found.ended, found.basis.points.dtype) == (10, "size", np.dtype(dtype))


def test_rows_that_are_zero_to_a_linear_kernel() -> None:
    X = np.zeros((40, 2))
    assert len(run(X, 5, kernel=Linear()).basis) == 0
    X[7] = 1.0
    assert run(X, 5, kernel=Linear()).basis.rows.tolist() == [7]


def test_every_row_can_become_a_function() -> None:
    X = np.random.default_rng(2).standard_normal((9, 3))
    assert sorted(run(da.from_array(X, chunks=(4, 3)), 9).basis.rows.tolist()) == list(range(9))
    assert run(X[:1], 1).basis.rows.tolist() == [0]


@pytest.mark.parametrize(
    "options", [{"ridge": 0.0}, {"ridge": np.inf}, {"growth": 1}, {"growth": 2.5}, {"in_memory": 0}]
)
def test_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(options))):
        Leverage(**options)
