"""Folds of rows: a function of their features alone, with equal shares."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import chunkings, rows, seeds

from streamkernel.table import Folds, open_table
from streamkernel.table.row_keys import row_keys


def folds_of(X: NDArray[Any], folds: Folds) -> NDArray[np.int64]:
    return folds.of(row_keys(X))


@given(X=rows(min_rows=2), seed=seeds, data=st.data())
def test_equal_rows_share_a_fold_in_any_order_cut_and_precision(X: Any, seed: int, data: st.DataObject) -> None:
    folds = Folds(3, 8, seed)
    found = folds_of(X, folds)
    order = data.draw(st.permutations(range(len(X))))
    np.testing.assert_array_equal(folds_of(X[order], folds), found[order])
    ends = np.cumsum((0, *data.draw(chunkings(len(X)))))
    parts = [folds_of(X[start:stop], folds) for start, stop in pairwise(ends)]
    np.testing.assert_array_equal(np.concatenate(parts), found)
    # Zeros of either sign, and single precision written in double, are the same numbers.
    np.testing.assert_array_equal(folds_of(np.where(X == 0, -0.0, X.astype(np.float64)), folds), found)
    _, first, at = np.unique(X, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(found, found[first][at.ravel()])


@pytest.mark.parametrize("folds", [Folds(), Folds(4), Folds(1, 8, 5), Folds(3, 5, 2**40)])
def test_folds_have_equal_shares(folds: Folds) -> None:
    keys = row_keys(np.arange(80_000.0)[:, None])
    counts = np.bincount(folds.of(keys), minlength=folds.count + 1)
    expected = 80_000 / folds.buckets
    np.testing.assert_allclose(counts[: folds.count], expected, atol=4 * np.sqrt(expected))
    assert folds.held_out(keys).mean() == pytest.approx(folds.share, abs=0.01)
    # Groups divide each fold evenly too.
    groups = np.bincount(folds.groups(keys, 10)[folds.of(keys) == 0], minlength=10)
    np.testing.assert_allclose(groups, expected / 10, atol=4 * np.sqrt(expected / 10))


def test_the_seed_draws_other_folds() -> None:
    keys = row_keys(np.arange(8_000.0)[:, None])
    both = Folds(4, 8, 1).held_out(keys) & Folds(4, 8, 2).held_out(keys)
    assert both.mean() == pytest.approx(0.25, abs=0.02)


def test_targets_and_scaling_do_not_move_a_row() -> None:
    X = np.random.default_rng(0).standard_normal((50, 3))
    found = [open_table(X, y).with_keys().read(0, 50).keys for y in (None, np.arange(50.0))]
    assert found[0] is not None
    assert found[1] is not None
    np.testing.assert_array_equal(Folds().of(found[0]), Folds().of(found[1]))


def test_some_bucket_is_left_to_train_on() -> None:
    with pytest.raises(ValueError, match="some must train"):
        Folds(8, 8)
