"""The compression bound: printed numbers, monotony, and populations that it must not promise too much about."""

from __future__ import annotations

import math
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.bounds import compression_bound
from streamkernel.bounds._binomials import log_binomial, relaxed_log_binomial
from streamkernel.errors import ParameterError

TRACES = [31.8666, 25.0118, 18.3675, 14.5094, 11.0949, 8.62676]
SIX = [1.18178, 1.07723, 0.959704, 0.90453, 0.852609, 0.82052]
SIX_RELAXED = [1.19895, 1.09764, 0.982098, 0.928699, 0.878651, 0.84865]


def printed(values: Any) -> list[str]:
    return [f"{value:.6g}" for value in values]


def test_numbers_of_six_picks_of_the_example() -> None:
    found = compression_bound(TRACES, 40)
    assert printed(found.values) == printed(SIX)
    assert printed(found.relaxed) == printed(SIX_RELAXED)
    assert found.argmin == 5
    assert found.best_size == 6
    assert found.minimum == found.values[5]
    assert not found.vacuous
    assert compression_bound(TRACES[:2], 40).vacuous
    # The printed ones are of printed traces, six digits of these.
    path = naive.greedy(naive.card().K, [range(40)] * 6, naive.function_space).traces
    np.testing.assert_allclose(compression_bound(path, 40).values, found.values, atol=2e-6)


@pytest.mark.parametrize(
    ("rows", "size", "trace", "residual", "bound"),
    [(4000, 40, 40.0, 0.0101, 0.18145), (10**6, 200, 1e4, 0.0100, 0.040962)],
)
def test_numbers_of_larger_tables(rows: int, size: int, trace: float, residual: float, bound: float) -> None:
    found = compression_bound([trace], rows, sizes=[size])
    assert found.residual[0] == pytest.approx(residual, abs=5e-5)
    assert printed(found.values) == printed([bound])


def paths(rows: int) -> st.SearchStrategy[Any]:
    drops = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=rows)
    return drops.map(lambda shares: np.cumprod(shares) * (rows - np.arange(1, len(shares) + 1)))


@given(st.data(), st.integers(2, 60), st.floats(1e-9, 0.5), st.floats(0.01, 50.0))
def test_order_of_the_bounds(data: st.DataObject, rows: int, delta: float, largest: float) -> None:
    path = data.draw(paths(rows)) * largest
    found = compression_bound(path, rows, delta, largest)
    # At least what was seen, at most the relaxation, wider when surer; and what is promised for a basis never rises.
    assert np.all(found.values >= found.residual)
    assert np.all(found.residual * rows >= path)
    assert np.all(found.values <= found.relaxed)
    surer = compression_bound(path, rows, delta / 2, largest).values
    assert np.all(surer[found.sizes < rows] > found.values[found.sizes < rows])
    assert np.all(np.diff(np.append(np.inf, found.running_minimum)[1:]) <= 0)
    assert found.minimum == found.running_minimum[-1] == found.values.min()
    # The loss in another unit is the bound in another unit.
    np.testing.assert_allclose(compression_bound(path / largest, rows, delta).values * largest, found.values, rtol=1e-9)


@given(st.integers(1, 300), st.floats(0.0, 1.0), st.floats(1e-6, 0.5))
def test_goes_to_nothing_as_rows_grow(size: int, trace: float, delta: float) -> None:
    values = [compression_bound([trace], rows, delta, sizes=[size]).minimum for rows in (10**4, 10**5, 10**7, 10**9)]
    assert np.all(np.diff(values) < 0)
    assert values[-1] < 2e-3


def test_all_rows_as_basis_leave_nothing_to_bound_with() -> None:
    found = compression_bound([3.0, 1.0, 0.5, 0.0], 4)
    assert found.values[-1] == np.inf == found.relaxed[-1]
    assert np.all(np.isfinite(found.values[:-1]))
    assert found.running_minimum[-1] == found.values[:-1].min()
    alone = compression_bound([0.0], 1)
    assert alone.minimum == np.inf
    assert alone.vacuous


def test_a_path_may_start_with_no_basis() -> None:
    path = [40.0, 31.8666, 25.0118]
    found = compression_bound(path, 40, sizes=[0, 1, 2])
    assert found.values[0] == pytest.approx(1.0 + math.sqrt(math.log(40 / 0.05) / 80))
    np.testing.assert_array_equal(found.values[1:], compression_bound(path[1:], 40).values)


@given(st.integers(0, 400), st.data())
def test_binomials(m: int, data: st.DataObject) -> None:
    t = data.draw(st.integers(0, m))
    assert float(log_binomial(m, t)) == pytest.approx(math.log(math.comb(m, t)), rel=1e-12, abs=1e-12)
    assert log_binomial(m, t) <= relaxed_log_binomial(m, t) + 1e-12


@pytest.mark.parametrize("t", [1, 3, 200])
def test_binomials_of_many_rows_keep_their_digits(t: int) -> None:
    exact = math.log(math.comb(10**9, t))
    assert float(log_binomial(10**9, t)) == pytest.approx(exact, rel=1e-12)


def test_held_out_residual_of_a_gaussian_kernel() -> None:
    """Fifty tables of 300 rows: greedy picks on them, the residual of 300 rows of the same distribution."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((600, 2)) * [2.0, 0.3]
        K = naive.gaussian(X, X, 2.0)
        R = K.copy()
        trace, held = [], []
        for _ in range(12):
            diagonal = R.diagonal()[:300]
            alive = diagonal > 1e-9
            scores = np.where(alive, (R[:300, :300] ** 2).sum(axis=0) / np.where(alive, diagonal, 1.0), 0.0)
            pick = int(np.argmax(scores))
            R = R - np.outer(R[:, pick], R[pick]) / R[pick, pick]
            trace.append(max(R.diagonal()[:300].sum(), 0.0))
            held.append(R.diagonal()[300:].mean())
        found = compression_bound(trace, 300)
        assert np.all(np.array(held) <= found.running_minimum), seed
        assert not found.vacuous


def test_what_was_never_met_is_paid_for_by_the_binomial() -> None:
    """k(x, z) = 1 where x = z, 1000 categories alike: the residual of a new row is the share of categories not chosen.

    Two hundred rows are rid of all residual by about 180 functions, and a new row is not: Hoeffding's radius for one
    fixed set would promise too much, the union over all sets does not.
    """
    deceived = 0
    for seed in range(50):
        counts = np.sort(np.unique(np.random.default_rng(seed).integers(0, 1000, 200), return_counts=True)[1])[::-1]
        path = 200.0 - np.cumsum(counts)
        truth = 1.0 - np.arange(1, len(counts) + 1) / 1000
        found = compression_bound(path, 200)
        assert np.all(truth <= found.running_minimum), seed
        one_set = found.residual + np.sqrt(math.log(200 / 0.05) / (2 * (200 - found.sizes)))
        deceived += bool(np.any(one_set < truth))
    assert deceived == 50


@pytest.mark.parametrize("steepness", [1.2, 2.0])
def test_held_out_residual_of_categories_as_words_are_spread(steepness: float) -> None:
    """As above with frequencies 1 / rank^a, 5000 rows: the bound says something, and keeps it."""
    weights = 1.0 / np.arange(1, 5001) ** steepness
    weights /= weights.sum()
    for seed in range(50):
        rows = np.random.default_rng(seed).choice(5000, 5000, p=weights)
        names, counts = np.unique(rows, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        found = compression_bound(5000.0 - np.cumsum(counts[order]), 5000)
        truth = 1.0 - np.cumsum(weights[names[order]])
        assert np.all(truth <= found.running_minimum), seed
        assert found.minimum < 0.7


@pytest.mark.parametrize(
    ("path", "rows", "options", "word"),
    [
        ([3.0, 4.0], 40, {}, "rises"),
        ([50.0], 40, {}, "largest"),
        ([50.0], 40, {"largest": 0.5}, "largest"),
        ([1.0] * 5, 4, {}, "at most one per row"),
        ([[1.0]], 4, {}, "shape"),
        ([], 4, {}, "shape"),
        ([1.0, float("inf")], 4, {}, "finite"),
        ([-1.0], 4, {}, r"path\[0\]"),
        ([1.0], 4, {"delta": 0.0}, "delta"),
        ([1.0], 0, {}, "rows"),
        ([1.0, 0.5], 4, {"sizes": [2, 2]}, "ascending"),
        ([1.0, 0.5], 4, {"sizes": [1.0, 2.0]}, "whole"),
        ([1.0, 0.5], 4, {"sizes": [1]}, "sizes"),
    ],
)
def test_bad_paths(path: Any, rows: int, options: dict[str, Any], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        compression_bound(path, rows, **options)
