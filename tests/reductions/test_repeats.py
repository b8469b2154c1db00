"""What is counted of repeated rows is the same however they lie, and near the truth of a large table."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from streamkernel.reductions.pools import CountRepeats, Repeats
from streamkernel.table import RowBlock
from streamkernel.table.row_keys import distinct_rows


def counted(X: np.ndarray, Y: np.ndarray, edges: list[int], kept: int = 4096) -> Repeats:  # type: ignore[type-arg]
    work = CountRepeats(X.shape[1], Y.shape[1], kept)
    blocks = [RowBlock(a, X[a:b], Y[a:b]) for a, b in pairwise(edges)]
    state = work.map_block(blocks[0])
    for block in blocks[1:]:
        state = work.fold(state, block)
    return work.finalize(state)


@pytest.mark.parametrize("kept", [50, 4096])
def test_neither_blocks_nor_order_matter(kept: int) -> None:
    rng = np.random.default_rng(0)
    at = rng.integers(0, 300, 1000)
    X, Y = rng.standard_normal((300, 3))[at], rng.standard_normal((300, 1))[at]
    order = rng.permutation(1000)
    whole = counted(X, Y, [0, 1000], kept)
    assert counted(X, Y, [0, 1, 7, 340, 1000], kept) == whole
    assert counted(X[order], Y[order], [0, 500, 1000], kept) == whole


def test_a_large_table_is_estimated() -> None:
    rng = np.random.default_rng(1)
    at = np.repeat(np.arange(30_000), rng.integers(1, 8, 30_000))
    X, Y = rng.standard_normal((30_000, 2))[at], rng.standard_normal((30_000, 1))[at]
    found = counted(X, Y, [0, len(at) // 2, len(at)])
    assert found.distinct == pytest.approx(30_000, rel=0.06)
    assert found.share == pytest.approx(30_000 / len(at), rel=0.06)


def test_distinct_rows_are_independent_along_one_column() -> None:
    x = np.sort(np.random.default_rng(2).standard_normal((5000, 1)))
    assert counted(x, np.sin(x), [0, 5000]).share == 1.0
    labels = np.hstack([x > 0, x <= 0]).astype(float)
    assert counted(x, labels, [0, 5000]).share == 1.0


def test_labels_of_equal_rows_may_agree_by_chance() -> None:
    rng = np.random.default_rng(3)
    cells = rng.integers(0, 12, (5000, 1)).astype(float)
    labels = (rng.uniform(size=(5000, 1)) < 0.1 + 0.06 * cells).astype(float)
    assert counted(cells, labels, [0, 5000]).share == 1.0


def test_zero_has_one_sign_and_extremes_differ() -> None:
    assert distinct_rows(np.array([[0.0], [-0.0], [1e300], [-1e300], [1e-300]])).tolist() == [0, 2, 3, 4]
