"""Keys of rows by their content: equal rows have the same, others have not, whatever the numbers are."""

from __future__ import annotations

import numpy as np
import pytest

from streamkernel.table.row_keys import EXACT, Rounding, distinct_rows, row_keys, typical_sizes

RNG = np.random.default_rng(0)
WORDS = {
    "bits": RNG.integers(0, 2, (20_000, 30)).astype(float),
    "whole numbers": RNG.integers(0, 10, (20_000, 20)).astype(float),
    "single precision": RNG.standard_normal((20_000, 5)).astype(np.float32),
    "one column": np.arange(20_000.0)[:, None],
    "powers": np.ldexp(1.0, RNG.integers(-1000, 1000, (20_000, 8))),
}


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("digits", [EXACT, 20])
def test_rows_that_differ_have_different_keys(name: str, digits: int) -> None:
    """Numbers of few digits leave the lower half of a word empty; keys must tell them apart as any others."""
    X = np.unique(WORDS[name], axis=0)
    keys = row_keys(X, Rounding(digits))
    assert len(np.unique(keys)) == len(X)
    # Shares of the range are shares of the rows: keys are as good as uniform.
    assert np.mean(keys < np.uint64(2**64 // 10)) == pytest.approx(0.1, abs=0.01)


def test_all_different_rows_of_whole_numbers_are_distinct() -> None:
    X = np.unique(WORDS["bits"], axis=0)
    assert len(distinct_rows(X)) == len(X)
    twice = np.concatenate([X, X[::-1]])
    np.testing.assert_array_equal(distinct_rows(twice), np.arange(len(X)))


def test_equal_rows_have_equal_keys_in_any_precision_and_layout() -> None:
    X = WORDS["single precision"].copy()
    X[0] = 0.0
    again = np.asfortranarray(X.astype(np.float64))
    again[0] = -0.0
    np.testing.assert_array_equal(row_keys(X), row_keys(again))
    np.testing.assert_array_equal(row_keys(X)[5:9], row_keys(X[5:9]))


@pytest.mark.parametrize("offset", [0.0, 5e4])
def test_edges_that_part_copies_are_others_each_time(offset: float) -> None:
    """Of rows that differ by a tenth of a step, each set of edges parts some, and hardly a pair is parted by all."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, 4))
    origin = np.full(4, offset)
    apart = []
    for edges in range(12):
        rounding = Rounding(10, origin, edges, np.ones(4))
        first, again = (row_keys(rows + offset, rounding) for rows in (X, X + 1e-4 * rng.uniform(-1.0, 1.0, X.shape)))
        assert len(np.unique(first)) == len(X)
        apart.append(first != again)
    assert 0.02 < np.mean(apart) < 0.5
    assert np.all(apart, axis=0).mean() < 1e-3


def test_numbers_near_0_are_rounded_as_those_of_typical_size() -> None:
    numbers = np.array([[1e-9], [-1e-9], [0.0], [1.0], [1.001], [1.1], [1e300]])
    found = row_keys(numbers, Rounding(8, edges=1, typical=np.ones(1)))
    assert len(set(found[:3].tolist())) == 1
    assert len(set(found.tolist())) == 4
    assert len(set(row_keys(numbers, Rounding(8)).tolist())) == 6


def test_typical_sizes_are_medians_of_what_is_not_0() -> None:
    X = np.array([[0.0, 0.0, 10.0], [0.0, -4.0, 11.0], [0.0, 2.0, 13.0], [0.0, 3.0, 1e9]])
    assert typical_sizes(X, None).tolist() == [1.0, 3.0, 13.0]
    assert typical_sizes(X, np.array([0.0, 0.0, 10.0])).tolist() == [1.0, 3.0, 3.0]
    wide = np.repeat(X, 200, axis=1)
    assert typical_sizes(wide, None)[::200].tolist() == [1.0, 3.0, 13.0]


def test_without_rounding_keys_are_what_they_were() -> None:
    """Folds of fits, and the rows that a model has seen, are told by them: they never change."""
    X = np.array([[0.0, 1.0, -2.5], [3.0, 1e-300, 7.0]])
    assert row_keys(X).tolist() == [6022920159166372906, 6176778763759478579]
    assert row_keys(X, Rounding(20)).tolist() == [6828395011939807937, 12170482342077951930]
