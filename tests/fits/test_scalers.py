"""Scalers from a sample: quantiles and ranks against NumPy and SciPy, ties, rare values, weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from streamkernel.errors import StreamKernelWarning
from streamkernel.fits.steps.scalers import bounded_scaler, rank_scaler, robust_scaler, standard_scaler
from streamkernel.table import ColumnStatistics, RankScaler, RowScaler

KINDS = pytest.mark.parametrize("kind", ["robust", "rank"])


def _scaler(kind: str, X: np.ndarray, rows: np.ndarray | None = None, weights: np.ndarray | None = None) -> RowScaler:
    """The scaler from a sample X of some rows, which are the sample itself by default."""
    statistics = ColumnStatistics.of(X if rows is None else rows)
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    return bounded_scaler(kind, statistics, names, X, np.ones(len(X)) if weights is None else weights)


def _tails(rows: int, seed: int = 0) -> np.ndarray:
    """Columns without, with light and with heavy tails, and counts of which nine in ten are 0."""
    rng = np.random.default_rng(seed)
    counts = np.where(rng.random(rows) < 0.9, 0.0, rng.poisson(3.0, rows))
    return np.column_stack([rng.random(rows), rng.normal(size=rows), rng.standard_t(1, rows), counts])


def test_columns_are_clipped_at_three_robust_deviations_and_standardised() -> None:
    X = _tails(999)
    scaler = _scaler("robust", X)
    for j, q in enumerate([0.75, 0.75, 0.75, 0.95]):
        low, middle, high = np.quantile(X[:, j], [1 - q, 0.5, q], method="averaged_inverted_cdf")
        spread = (high - low) / (2 * norm.ppf(q))
        clipped = np.clip(X[:, j], middle - 3 * spread, middle + 3 * spread)
        expected = (clipped - clipped.mean()) / clipped.std()
        np.testing.assert_allclose(scaler.apply(X, np.float64)[:, j], expected, rtol=1e-9, atol=1e-9)
    assert np.abs(scaler.apply(X, np.float64)[:, 2]).max() < 4


def test_columns_become_their_ranks_of_mean_0_and_deviation_1() -> None:
    X = _tails(200)
    found = _scaler("rank", X).apply(X, np.float64)
    ranks = rankdata(X, axis=0)
    expected = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_of_many_values_the_map_keeps_some_and_no_rank_is_off_by_more_than_a_step() -> None:
    X = _tails(8000)
    scaler = _scaler("rank", X)
    assert isinstance(scaler, RankScaler)
    assert scaler.counts.max() <= 256
    ranks = (rankdata(X, axis=0) - 0.5) / len(X)
    expected = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    found = scaler.apply(X, np.float64)
    np.testing.assert_allclose(found, expected, atol=3.6 / 128)
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.std(axis=0), 1.0, rtol=1e-12)


def test_both_values_at_a_jump_of_the_rank_are_kept() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([np.zeros(6000), 1.0 + rng.random(2000)])[:, None]
    found = _scaler("rank", X).apply(np.array([[0.0], [X[X > 0].min()]]), np.float64)
    ranks = (rankdata(X[:, 0]) - 0.5) / len(X)
    expected = (np.array([ranks[0], ranks[6000:].min()]) - ranks.mean()) / ranks.std()
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-2)


@KINDS
def test_binary_columns_are_as_with_standard(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(3000) < share for share in (0.5, 0.1, 0.004)]).astype(np.float64)
    standard = standard_scaler(ColumnStatistics.of(X), ("a", "b", "c"))
    # The sample has other shares than the table.
    found = _scaler(kind, np.concatenate([X[:500], X[X.any(axis=1)][-5:]]), X).apply(X, np.float64)
    if kind == "rank":
        np.testing.assert_array_equal(found, standard.apply(X, np.float64))
    np.testing.assert_allclose(np.corrcoef(found.T, X.T).diagonal(3), 1.0, rtol=1e-12)
    np.testing.assert_allclose(found[:, :1], standard.apply(X, np.float64)[:, :1], rtol=1e-12)


@KINDS
def test_constant_columns_are_named_and_become_0(kind: str) -> None:
    X = np.column_stack([np.arange(50.0), np.full(50, 0.1), np.full(50, 1e8)])
    with pytest.warns(StreamKernelWarning, match="2 of 3 columns are constant and carry nothing: x1, x2"):
        scaler = _scaler(kind, X)
    np.testing.assert_allclose(scaler.apply(X + 7.0, np.float64)[:, 1:], 0.0, atol=1e-6)


@KINDS
def test_whole_numbers_that_float64_rounded_to_one_are_told(kind: str) -> None:
    X = np.column_stack([np.arange(50.0), np.full(50, 0.1), (2**62 + np.arange(50)).astype(np.float64)])
    with pytest.warns(StreamKernelWarning, match="constant and carry nothing: x1, x2; those of x2 are beyond 2\\^53"):
        _scaler(kind, X)


@KINDS
def test_a_column_that_only_the_sample_has_constant_keeps_what_it_tells(kind: str) -> None:
    X = np.zeros((5000, 2))
    X[:, 0], X[7, 1], X[9, 1] = np.arange(5000), 1.0, 400.0
    found = _scaler(kind, X[100:], X).apply(X, np.float64)[:, 1]
    assert found[0] < found[7] <= found[9] <= 3.0 + 1e-9


@KINDS
@given(seed=st.integers(0, 30), rows=st.integers(1, 60), zeros=st.booleans())
def test_whole_weights_are_repeated_rows(kind: str, seed: int, rows: int, zeros: bool) -> None:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=rows), rng.integers(0, 4, rows), rng.standard_t(1, rows), np.arange(rows)])
    weights = rng.integers(0 if zeros else 1, 4, rows)
    weights[0] = 1
    statistics, names = ColumnStatistics.of(np.concatenate([X, X - 1.0])), tuple("abcd")
    weighted = bounded_scaler(kind, statistics, names, X, weights.astype(np.float64))
    repeated = bounded_scaler(kind, statistics, names, np.repeat(X, weights, axis=0), np.ones(weights.sum()))
    np.testing.assert_allclose(weighted.apply(X, np.float64), repeated.apply(X, np.float64), rtol=1e-9, atol=1e-9)


@KINDS
@given(seed=st.integers(0, 30), rows=st.integers(2, 400))
def test_the_order_of_the_sample_does_not_matter_and_far_rows_are_bounded(kind: str, seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    X = _tails(rows, seed) + np.arange(rows)[:, None] * 1e-9
    scaler, shuffled = _scaler(kind, X), _scaler(kind, X[rng.permutation(rows)], X)
    near = np.sort(scaler.apply(X, np.float64), axis=0)
    np.testing.assert_allclose(shuffled.apply(X, np.float64), scaler.apply(X, np.float64), rtol=1e-9, atol=1e-9)
    far = scaler.apply(np.array([[-1e300] * 4, [1e300] * 4]), np.float64)
    if kind == "rank":
        np.testing.assert_array_equal(far, near[[0, -1]])
    else:
        lower, upper = scaler.lower, scaler.upper  # type: ignore[attr-defined]
        np.testing.assert_allclose(far, (np.array([lower, upper]) - scaler.mean) / scaler.scale)  # type: ignore[attr-defined]


@KINDS
@pytest.mark.parametrize("value", [0.0, 3.5, -1e200])
def test_a_single_row(kind: str, value: float) -> None:
    with pytest.warns(StreamKernelWarning, match="constant"):
        scaler = _scaler(kind, np.full((1, 2), value))
    np.testing.assert_array_equal(scaler.apply(np.full((3, 2), value), np.float64), 0.0)


@KINDS
def test_rows_without_weight_count_where_no_row_has_any(kind: str) -> None:
    X = _tails(50)
    assert _scaler(kind, X, weights=np.zeros(50)) == _scaler(kind, X)


def test_words_choose_the_scaler() -> None:
    X = _tails(50)
    statistics, names, ones = ColumnStatistics.of(X), tuple("abcd"), np.ones(50)
    assert _scaler("robust", X) == robust_scaler(statistics, names, X, ones)
    assert _scaler("rank", X) == rank_scaler(statistics, names, X, ones)


@KINDS
def test_a_column_that_is_constant_but_for_rounding_stays_so(kind: str) -> None:
    noise = np.full(900, 0.3)
    noise[::3], noise[1::3] = 0.1 + 0.2, np.nextafter(0.3, 0.0)
    single = np.full(900, 0.3)
    single[7] = np.nextafter(0.3, 1.0)
    X = np.column_stack([np.random.default_rng(0).normal(size=900), noise, single])
    with pytest.warns(StreamKernelWarning, match="2 of 3 columns are constant"):
        scaler = _scaler(kind, X)
    assert (scaler.apply(X, np.float64)[:, 1:].std(axis=0) < 1e-12).all()
