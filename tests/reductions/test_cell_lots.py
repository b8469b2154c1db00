"""Near copies are found by cells: which rows are sampled, which are copies, and which cells hold them together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import dask.array as da
import data_sets
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from problems import scratch_of
from strategies import few_examples, seeds

from streamkernel import open_table
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.fits.steps.near_copies import rounding_of_copies
from streamkernel.reductions.pools import CellSample
from streamkernel.table import ColumnStatistics, RowBlock
from streamkernel.table.cell_keys import Cells
from streamkernel.table.row_keys import NO_ROUNDING, RowRounding


def found(X: Any, Y: Any, weights: Any = None, chunk_rows: int | None = None, **options: Any) -> RowRounding:
    if chunk_rows is not None:
        X = da.from_array(X, chunks=(chunk_rows, -1))
    return rounding_of_copies(open_table(X, Y, weights=weights, **options), Session(ThreadExecutor(1)))


class Copies:
    """400 rows of some columns, each so many times with differences of this size in all numbers, in a random order."""

    def __init__(self, columns: int, jitter: float, times: int = 6, seed: int = 3) -> None:
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-3.0, 3.0, (400, columns)), rng.standard_normal(400)
        self.at = rng.permutation(np.repeat(np.arange(400), times))
        self.X = X[self.at] + jitter * rng.standard_normal((len(self.at), columns))
        self.y = y[self.at] + jitter * rng.standard_normal(len(self.at))
        self.first = np.unique(self.at, return_index=True)[1]

    def apart(self, rounding: RowRounding) -> tuple[float, int]:
        """Share of the copies that are not with the first of their row, and the number of keys of distinct rows."""
        keys = rounding.keys(self.X)
        others = len(keys) - 400
        return float(np.sum(keys != keys[self.first][self.at]) / others), len(np.unique(keys[self.first]))


@pytest.mark.parametrize("columns", [1, 2, 5, 20, 100])
@pytest.mark.parametrize("jitter", [1e-12, 1e-9, 1e-7, 1e-5, 5e-5, 1e-4, 1e-3])
def test_copies_lie_in_one_cell_and_distinct_rows_do_not(columns: int, jitter: float) -> None:
    data = Copies(columns, jitter)
    apart, distinct = data.apart(found(data.X, data.y))
    # 400 distinct numbers in one column lie .015 apart: copies that differ by 1e-4 and more lie between them.
    assert apart < (0.2 if columns == 1 and jitter > 3e-5 else 0.05 if columns == 2 else 0.02)
    assert distinct > (390 if columns > 2 or jitter < 1e-6 else 230)


@pytest.mark.parametrize("columns", [2, 20])
def test_copies_are_found_where_each_row_stands_twice_in_a_large_table(columns: int) -> None:
    """A sample of 4,000 of 40,000 rows has 400 pairs, and a sample of cells 2,000."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((20_000, columns))
    y = rng.standard_normal(20_000)
    many = np.tile(X, (2, 1)) + 1e-6 * rng.standard_normal((40_000, columns))
    rounding = found(many, np.tile(y, 2) + 1e-6 * rng.standard_normal(40_000))
    keys = rounding.keys(many)
    assert np.mean(keys[:20_000] != keys[20_000:]) < 0.02
    assert len(np.unique(keys[:20_000])) > 0.9 * 20_000


@few_examples(0.2)
@given(seed=seeds, chunk_rows=st.integers(60, 900), columns=st.integers(1, 12))
def test_any_chunks_order_and_repeats_give_the_same_cells(seed: int, chunk_rows: int, columns: int) -> None:
    """Rows of weight w are rows that stand w times, and rows of weight 0 are none."""
    rng = np.random.default_rng(seed)
    data = Copies(columns, 10.0 ** rng.uniform(-9.0, -4.0), 3, seed)
    w = rng.integers(0, 3, len(data.X))
    whole = found(data.X, data.y, w.astype(float))
    repeated = np.repeat(np.arange(len(w)), w)
    order = rng.permutation(repeated)
    for other in (
        found(data.X, data.y, w.astype(float), chunk_rows=chunk_rows),
        found(data.X[repeated], data.y[repeated]),
        found(data.X[order], data.y[order], chunk_rows=chunk_rows),
    ):
        assert other.digest == whole.digest
    assert whole is not NO_ROUNDING


def test_rows_that_are_no_copies_stay() -> None:
    rng = np.random.default_rng(5)
    x = np.sort(rng.standard_normal((20_000, 1)), axis=0)
    again = np.repeat(rng.standard_normal((100, 3)), 20, axis=0)
    near = again + 1e-6 * rng.standard_normal(again.shape)
    grid = rng.integers(0, 9, (4000, 3)).astype(float)
    cases: dict[str, tuple[Any, Any, bool]] = {
        "a dense column without noise": (x, np.sin(x).ravel(), False),
        "a dense column of classes": (x, (x.ravel() > 0).astype(int), True),
        "rows measured again": (near, rng.standard_normal(2000), False),
        "rows of two classes measured again": (near, rng.integers(0, 2, 2000), True),
        "a grid": (grid, rng.standard_normal(4000), False),
        "equal rows": (again, np.repeat(rng.standard_normal(100), 20), False),
        "one row": (x[:1], x[:1, 0], False),
        "constants": (np.ones((50, 2)), np.zeros(50), False),
        "clusters of all sizes": (x**9, rng.standard_normal(20_000), False),
        "numbers at the ends of the range": (x * 1e150, rng.standard_normal(20_000), False),
    }
    for name, (X, y, classify) in cases.items():
        assert found(X, y, classify=classify) is NO_ROUNDING, name


def test_copies_with_labels_are_found() -> None:
    data = Copies(2, 1e-8)
    labels = np.digitize(data.y[data.first][data.at], [-0.5, 0.5])
    apart, distinct = data.apart(found(data.X, labels, classify=True))
    assert apart < 0.02
    assert distinct > 390


@pytest.mark.parametrize("name", ["abalone", "boston", "spambase", "kin-8nm"])
def test_hardly_a_row_of_ordinary_tables_is_a_copy(name: str) -> None:
    stored = data_sets.load(name)
    if stored is None:
        pytest.skip(f"../shared/data/{name}.npz is not there")
    y = np.asarray(stored.y).ravel()
    assert found(np.asarray(stored.X, np.float64), y, classify=name == "spambase") is NO_ROUNDING


def test_a_row_has_one_key_in_any_block_and_as_a_sparse_row() -> None:
    rng = np.random.default_rng(6)
    X = np.where(rng.random((60, 37)) < 0.3, rng.standard_normal((60, 37)) * 10.0 ** rng.integers(-3, 4, 37), 0.0)
    cells = Cells.of(ColumnStatistics.of(X), sparse=True).at(2.0**-20)
    keys = cells.keys(X)
    assert len(np.unique(keys)) == 60
    parts = [cells.keys(np.asfortranarray(X[a:b])) for a, b in pairwise([0, 1, 20, 60])]
    np.testing.assert_array_equal(np.concatenate(parts), keys)
    table = open_table(scipy.sparse.csr_array(X), sparse=True)
    np.testing.assert_array_equal(table.features.keys(table.read(0, 60).X, cells), keys)
    np.testing.assert_array_equal(cells.keys(X.astype(np.float32).astype(np.float64)), cells.keys(X.astype(np.float32)))


@pytest.mark.parametrize("sparse", [False, True])
def test_wide_rows_are_sampled_in_the_memory_of_the_plan(sparse: bool) -> None:
    rng = np.random.default_rng(8)
    rows, entries = 300, 2000
    X = rng.standard_normal((rows, entries))
    cells = Cells(np.ones(entries))
    if sparse:
        X = np.concatenate([np.tile(np.arange(float(entries)), (rows, 1)), X], axis=1)
    work = CellSample(cells, Cells(np.ones(1)), 50, X.shape[1], sparse)
    block = RowBlock(0, X, rng.standard_normal((rows, 1)), np.arange(rows) % 3 * 1.0)
    state = work.map_block(block)
    assert scratch_of(work, state, block) <= work.scratch_bytes(rows)
    assert len(work.finalize(state).targets) == 50
