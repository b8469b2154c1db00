"""What is counted of repeated rows is the same however they lie, and near the truth of a large table."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from problems import scratch_of

from streamkernel.reductions import Sample
from streamkernel.reductions.pools import CountRepeats, Lots, Origins, Repeats
from streamkernel.table import ColumnStatistics, RowBlock
from streamkernel.table.row_keys import Rounding, distinct_rows, row_keys


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


def sample_of(X: np.ndarray, Y: np.ndarray) -> Sample:  # type: ignore[type-arg]
    return Sample(np.arange(len(X)), X, Y, np.ones(len(X)))


@pytest.mark.parametrize("offset", [0.0, 1e5])
@pytest.mark.parametrize("jitter", [0.0, 1e-14, 1e-7, 5e-6])
def test_one_of_each_lot_of_near_copies_is_taken(jitter: float, offset: float) -> None:
    """Also of those that an edge parts, and of those near 0, where a digit of a number is smaller than the jitter."""
    rng = np.random.default_rng(4)
    X, Y = rng.standard_normal((300, 8)), rng.standard_normal((300, 1))
    X[:, 0] *= rng.uniform(size=300) < 0.1  # mostly zeros
    at = rng.permutation(np.repeat(np.arange(300), 6))
    many, many_Y = X[at] + offset, Y[at] + jitter * rng.standard_normal((1800, 1))
    many[:, 1:] += jitter * rng.standard_normal((1800, 7))
    origins = Origins.of(ColumnStatistics.of(many), ColumnStatistics.of(many_Y))
    work = CountRepeats(8, 1, origins=origins)
    found = work.finalize(work.map_block(RowBlock(0, many, many_Y, None, row_keys(many))))
    assert found.share < 0.7
    assert found.nearly == (jitter > 0.0 and (many != X[at] + offset).any())
    taken = Lots.among(sample_of(many, many_Y), found).first
    assert len(np.unique(at[taken])) == 300
    assert taken.sum() <= 306
    first = np.unique(at, return_index=True)[1]
    assert taken[first].all()


def test_rows_that_are_no_copies_stay() -> None:
    """Neighbours along a curve, rows measured again, and labels: none is near enough to another to be taken for it."""
    rng = np.random.default_rng(5)
    x = np.sort(rng.standard_normal((3000, 1)), axis=0)
    again = np.repeat(rng.standard_normal((100, 3)), 20, axis=0)
    for X, Y in (
        (x, np.sin(x)),
        (again, rng.standard_normal((2000, 1))),
        (x, (x > 0).astype(float)),
    ):
        work = CountRepeats(X.shape[1], 1)
        found = work.finalize(work.map_block(RowBlock(0, X, Y, None, row_keys(X))))
        assert found.share == 1.0
        assert not found.nearly
        assert Lots.among(sample_of(X, Y), found).first.all()


def test_near_copies_with_labels_agree_in_more_digits() -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((400, 2))
    labels = (X[:, :1] > 0).astype(float)
    at = np.tile(np.arange(400), 5)
    for jitter, near in ((1e-9, True), (1e-3, False)):
        many = X[at] + jitter * rng.standard_normal((2000, 2))
        work = CountRepeats(2, 1)
        found = work.finalize(work.map_block(RowBlock(0, many, labels[at], None, row_keys(many))))
        assert found.nearly == near
        assert Lots.among(sample_of(many, labels[at]), found).first.sum() == (400 if near else 2000)


@pytest.mark.parametrize("kept", [50, 4096])
def test_keys_in_all_digits_are_counted_however_rows_lie(kept: int) -> None:
    rng = np.random.default_rng(7)
    X = np.tile(rng.standard_normal((200, 2)), (3, 1))
    X[200:] *= 1.0 + 1e-12
    Y = np.tile(rng.standard_normal((200, 1)), (3, 1))
    work, keys = CountRepeats(2, 1, kept), row_keys(X)
    states = [work.map_block(RowBlock(a, X[a:b], Y[a:b], None, keys[a:b])) for a, b in pairwise([0, 150, 190, 600])]
    folded = work.fold(states[0], RowBlock(150, X[150:], Y[150:], None, keys[150:]))
    joined = work.combine(states[0], work.combine(states[1], states[2]))
    found = work.finalize(joined)
    assert work.finalize(folded) == found
    assert found.exact == pytest.approx(400, rel=0.3 if kept == 50 else 1e-12)
    assert found.distinct == pytest.approx(200, rel=0.3 if kept == 50 else 1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_wide_rows_are_counted_in_little_memory(sparse: bool, weighted: bool) -> None:
    """Keys of sparse rows took five arrays of the block's size, and rows of weight other than 0 were copied."""
    rng = np.random.default_rng(8)
    rows, entries = 300, 4000
    X = rng.standard_normal((rows, entries))
    if sparse:
        X = np.concatenate([np.tile(np.arange(float(entries)), (rows, 1)), X], axis=1)
    work = CountRepeats(X.shape[1], 1, origins=Origins(sparse_columns=entries if sparse else None))
    block = RowBlock(0, X, rng.standard_normal((rows, 1)), np.arange(rows) % 3 * 1.0 if weighted else None)
    state = work.map_block(block)
    assert scratch_of(work, state, block) <= work.scratch_bytes(rows)
    assert work.finalize(state).stored == (200 if weighted else 300)


def test_zero_has_one_sign_and_extremes_differ() -> None:
    assert distinct_rows(np.array([[0.0], [-0.0], [1e300], [-1e300], [1e-300]])).tolist() == [0, 2, 3, 4]


class NearCopies:
    """300 rows of some columns, each `times` times with small differences in all numbers; a row in ten stands once."""

    def __init__(self, columns: int, times: int, jitter: float) -> None:
        rng = np.random.default_rng(8)
        X, Y = rng.standard_normal((300, columns)), rng.standard_normal((300, 1))
        at = np.repeat(np.arange(300), np.where(np.arange(300) % 10, times, 1))
        self.at = rng.permutation(at)
        self.X = X[self.at] + jitter * rng.standard_normal((len(at), columns))
        self.Y = Y[self.at] + jitter * rng.standard_normal((len(at), 1))
        self.work = CountRepeats(
            columns, 1, origins=Origins.of(ColumnStatistics.of(self.X), ColumnStatistics.of(self.Y))
        )
        self.block = RowBlock(0, self.X, self.Y, None, row_keys(self.X))
        self.found = self.work.finalize(self.work.map_block(self.block))


@pytest.mark.parametrize(("columns", "jitter"), [(2, 1e-7), (2, 1e-5), (2, 5e-5), (20, 1e-7), (20, 1e-5)])
def test_lots_are_counted_wherever_edges_lie(columns: int, jitter: float) -> None:
    """From some of the rows; at one set of edges up to five times as many are counted."""
    data = NearCopies(columns, 10, jitter)
    assert data.found.uneven
    drawn = np.sort(np.random.default_rng(9).choice(len(data.X), 700, replace=False))
    sample = Sample(drawn, data.X[drawn], data.Y[drawn], np.ones(700))
    lots = Lots.among(sample, data.found)
    work = lots.sizes(sample)
    halves = [RowBlock(a, data.X[a:b], data.Y[a:b]) for a, b in ((0, 900), (900, len(data.X)))]
    sizes = work.finalize(work.fold(work.map_block(halves[0]), halves[1]))
    true = np.bincount(data.at)[data.at[drawn[lots.first]]]
    assert np.mean(sizes == true) > 0.9
    number = (np.cumsum(lots.first) - 1)[lots.of]
    assert len(data.X) / 700 * (1.0 / sizes[number]).sum() == pytest.approx(300, rel=0.15)


def test_rows_of_weight_0_are_in_no_lot() -> None:
    data = NearCopies(2, 4, 1e-7)
    lots = Lots.among(Sample(np.arange(len(data.X)), data.X, data.Y, np.ones(len(data.X))), data.found)
    work = lots.sizes(Sample(np.arange(len(data.X)), data.X, data.Y, np.ones(len(data.X))))
    kept = data.at % 2
    sizes = work.finalize(work.map_block(RowBlock(0, data.X, data.Y, kept.astype(float))))
    assert sizes.sum() == kept.sum()


@pytest.mark.parametrize("columns", [1, 2, 20])
@pytest.mark.parametrize("jitter", [1e-12, 1e-7, 1e-5])
def test_features_are_rounded_as_far_as_distinct_rows_stay_apart(columns: int, jitter: float) -> None:
    data = NearCopies(columns, 6, jitter)
    sample = Sample(np.arange(len(data.X)), data.X, data.Y, np.ones(len(data.X)))
    lots, origins = Lots.among(sample, data.found), Origins()
    rounding = lots.grouping(data.X, origins)
    keys = row_keys(data.X, rounding)
    assert len(np.unique(keys)) > 0.8 * 300
    if columns > 1:
        apart = [len(np.unique(keys[data.at == row])) > 1 for row in range(300)]
        assert np.mean(apart) < 0.05
    assert rounding.digest == Rounding(rounding.digits, None, typical=rounding.typical).digest
