"""The rows of a sample several times over."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from streamkernel.table import open_table, repeated


@pytest.mark.parametrize("m", [1, 5, 2500])
def test_every_block_is_that_of_the_rows_which_come_again(m: int) -> None:
    rng = np.random.default_rng(m)
    X, y, w = rng.standard_normal((m, 2)), rng.standard_normal(m), rng.uniform(0.5, 2.0, m)
    table = open_table(X, y, weights=w)
    again = pickle.loads(pickle.dumps(repeated(table, 3)))
    assert again.n_rows == 3 * m
    assert again.in_memory
    for first, last in ((0, m), (m, 2 * m), (2 * m + m // 2, 3 * m), (m // 3, 2 * m + 1)):
        block, rows = again.read(first, last), np.arange(first, last) % m
        assert block.start == first
        np.testing.assert_array_equal(block.X, X[rows])
        assert block.Y is not None
        np.testing.assert_array_equal(block.Y[:, 0], y[rows])
        np.testing.assert_array_equal(block.weights, w[rows])


def test_chunks_end_where_the_rows_begin_again() -> None:
    table = open_table(np.zeros((2500, 1)))
    again = repeated(table, 2)
    assert again.features.cuts(0, 5000).tolist() == [0, 1024, 2048, 2500, 3524, 4548, 5000]
    assert again.features.cuts(2500, 4000).tolist() == [2500, 3524, 4000]
    assert again.targets is None
    assert again.fingerprint not in (table.fingerprint, repeated(table, 3).fingerprint)
    assert again.fingerprint == repeated(open_table(np.zeros((2500, 1))), 2).fingerprint
    again.check_unchanged()


def test_rows_without_a_value_are_named_by_their_own_place() -> None:
    again = repeated(open_table(np.zeros((4, 1))), 3)
    assert again.features.where(9) == again.features.where(1)
