"""Keys of rows by their content: equal rows have the same, others have not, whatever the numbers are."""

from __future__ import annotations

import numpy as np
import pytest

from streamkernel.table.row_keys import EXACT, distinct_rows, row_keys

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
    keys = row_keys(X, digits)
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
