"""The look: exact certificate, draws that belong to rows, and weights that estimate without bias."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import basis_of, blocks
from scipy import stats
from strategies import chunkings, seeds

from streamkernel.kernels import Gaussian
from streamkernel.reductions import row_uniforms, stream_generator
from streamkernel.reductions.pools import ResidualSample, ResidualSampleResult

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 2)) * np.where(np.arange(60) % 3 == 0, 2.5, 0.4)[:, None]
Y = RNG.standard_normal((60, 2))
CHOSEN = [3, 8, 21, 40]
BASIS = basis_of(X, CHOSEN)
K = naive.gaussian(X, X)


def look(n_candidates: int, n_scoring: int, seed: int, order: Any = None, chunks: Any = (60,)) -> ResidualSampleResult:
    reduction = ResidualSample(BASIS, n_candidates, n_scoring, seed, (3, 0), 2)
    states = [reduction.map_block(block) for block in blocks(X, Y, chunks)]
    if order is not None:
        states = [states[i] for i in order]
    state = states[0]
    for other in states[1:]:
        state = reduction.combine(state, other)
    return reduction.finalize(state)


# ---------------------------------------------------------------------------------------------- the counter generator
@given(seeds, st.integers(0, 50), st.integers(0, 2**40), st.integers(1, 40), st.integers(0, 40))
def test_variates_belong_to_rows(seed: int, stream: int, start: int, count: int, cut: int) -> None:
    cut = min(cut, count)
    whole = row_uniforms(seed, (stream, 2), start, count)
    parts = [row_uniforms(seed, (stream, 2), start, cut), row_uniforms(seed, (stream, 2), start + cut, count - cut)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    assert (whole > 0).all()
    assert (whole < 1).all()


def test_variates_are_uniform_and_streams_differ() -> None:
    u = row_uniforms(1, (3, 0), 0, 20_000)
    for column in u.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(u.T) - np.eye(4)).max() < 0.03
    for seed, stream in ((2, (3, 0)), (1, (3, 1)), (1, (4, 0))):
        other = row_uniforms(seed, stream, 0, 20_000)
        assert abs(np.corrcoef(u[:, 0], other[:, 0])[0, 1]) < 0.03
    assert stream_generator(1, (3, 0)).random() not in u[:4]


# ------------------------------------------------------------------------------------------------- exact certificate
def test_residual_trace_is_exact() -> None:
    found = look(5, 5, 0, chunks=(7, 30, 23))
    assert found.residual_trace == pytest.approx(naive.residual_trace(K, CHOSEN), rel=1e-12)
    assert found.trace == pytest.approx(60.0)
    np.testing.assert_allclose(found.residuals, np.diag(naive.residual(K, CHOSEN))[found.candidates.rows], rtol=1e-9)


@given(st.data())
def test_draws_do_not_depend_on_blocks_or_their_order(data: st.DataObject) -> None:
    chunks = data.draw(chunkings(60))
    order = data.draw(st.permutations(range(len(chunks))))
    seed = data.draw(st.integers(0, 5))
    whole, cut = look(9, 14, seed), look(9, 14, seed, order, chunks)
    for name in ("rows", "X", "Y", "weights"):
        np.testing.assert_array_equal(getattr(whole.candidates, name), getattr(cut.candidates, name))
        np.testing.assert_allclose(getattr(whole.scoring, name), getattr(cut.scoring, name), rtol=1e-12)
    np.testing.assert_array_equal(cut.candidates.X, X[cut.candidates.rows])
    np.testing.assert_array_equal(cut.scoring.Y, Y[cut.scoring.rows])


def test_chosen_rows_are_never_drawn() -> None:
    found = look(60, 60, 1)
    assert len(found.candidates) == len(found.scoring) == 56
    assert not set(found.candidates.rows) & set(CHOSEN)
    # All rows with a residual score: nothing is estimated, every weight is one.
    np.testing.assert_array_equal(found.scoring.weights, 1.0)


def test_candidates_are_a_successive_weighted_sample() -> None:
    """The first two, against P(i, j) = r_i / R * r_j / (R - r_i) (card 1.5)."""
    r = naive.residual_diagonal(K, CHOSEN)
    first, pairs = np.zeros(60), np.zeros(60)
    runs = 2000
    for seed in range(runs):
        rows = look(2, 0, seed).candidates.rows
        first[rows[0]] += 1
        pairs[rows] += 1
    p = r / r.sum()
    second = np.array([sum(p[i] * p[j] / (1 - p[i]) for i in range(60) if i != j) for j in range(60)])
    for counts, expected in ((first, runs * p), (pairs, runs * (p + second))):
        live = expected > 5
        statistic = ((counts - expected)[live] ** 2 / expected[live]).sum()
        assert stats.chi2(live.sum() - 1).sf(statistic) > 1e-3


def test_candidates_and_scoring_rows_are_those_of_the_definitions() -> None:
    r = naive.residual_diagonal(K, CHOSEN)
    u = row_uniforms(11, (3, 0), 0, 60)
    found = look(12, 15, 11, chunks=(13, 20, 27))
    keys = naive.a_res_keys(u[:, 0], r)
    np.testing.assert_array_equal(found.candidates.rows, np.argsort(-keys)[:12])
    sample, tau, estimates = naive.priority_estimates(u[:, 1], r, 15)
    assert sorted(sample) == found.scoring.rows.tolist()
    np.testing.assert_allclose(found.scoring.weights, np.maximum(1.0, tau / r[found.scoring.rows]), rtol=1e-9)
    np.testing.assert_allclose(found.scoring.weights * r[found.scoring.rows], estimates[found.scoring.rows], rtol=1e-9)


def test_scoring_weights_estimate_sums_without_bias() -> None:
    """Sums over 12 of 60 rows, weighted, average to the sum over all rows with a residual."""
    values = np.column_stack([np.ones(60), X[:, 0], X[:, 0] ** 2, (naive.residual(K, CHOSEN) ** 2).sum(1), Y[:, 1]])
    live = naive.residual_diagonal(K, CHOSEN) > 0
    estimates = []
    for seed in range(1500):
        scoring = look(0, 12, seed).scoring
        assert len(set(scoring.rows.tolist())) == 12
        estimates.append(scoring.weights @ values[scoring.rows])
    mean, error = np.mean(estimates, axis=0), np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (abs(mean - values[live].sum(axis=0)) < 4 * error).all()


def test_an_empty_basis_looks_at_the_diagonal() -> None:
    empty = type(BASIS).empty(Gaussian(1.0), 2, np.dtype(np.float64))
    reduction = ResidualSample(empty, 4, 4, 0, (3, 0))
    found = reduction.finalize(reduction.map_block(next(blocks(X, None, [60]))))
    assert found.residual_trace == found.trace == 60.0
    assert found.candidates.Y.shape == (4, 0)
