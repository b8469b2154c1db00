"""Rows fetched by number: those of each sweep stay apart, and are mapped piece by piece."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.metric import MetricScaler
from streamkernel.selection import RowCache, row_cache
from streamkernel.selection.problem import distinct_rows
from streamkernel.selection.row_cache import as_stored, before_metric
from streamkernel.table import Table, open_table
from streamkernel.table.scaler import Scaler


def _table(m: int = 5000, p: int = 6) -> Table:
    rng = np.random.default_rng(0)
    return open_table(rng.standard_normal((m, p), dtype=np.float32), rng.standard_normal(m))


@pytest.mark.parametrize("keyed", [False, True])
def test_rows_of_several_sweeps_come_in_any_order(keyed: bool) -> None:
    table = _table().with_keys() if keyed else _table()
    session = Session(ThreadExecutor(1))
    cache, rng = RowCache(table, session), np.random.default_rng(1)
    for count in (300, 0, 500, 1):
        cache.fetch(rng.choice(5000, count, replace=False))
    assert len(session.records) == 3
    wanted = rng.permutation(np.r_[rng.choice(5000, 900, replace=False), [7, 7]])
    found, bare, whole = cache.get(wanted), cache.without_features(wanted), table.read(0, 5000)
    assert found.rows.tolist() == wanted.tolist() == bare.rows.tolist()
    np.testing.assert_array_equal(found.X, whole.X[wanted])
    np.testing.assert_array_equal(found.Y, whole.Y[wanted])
    np.testing.assert_array_equal(bare.Y, found.Y)
    assert bare.X.shape == (902, 0)
    assert (found.keys is not None) == keyed
    if found.keys is not None and whole.keys is not None:
        np.testing.assert_array_equal(found.keys, whole.keys[wanted])
    assert len(session.records) == 4


def test_an_empty_cache_has_no_rows() -> None:
    cache = RowCache(_table(), Session(ThreadExecutor(1)))
    none = np.zeros(0, np.int64)
    assert cache.get(none).X.shape == (0, 6)
    assert cache.without_features(none).Y.shape == (0, 1)


def test_mapped_rows_have_the_bits_of_a_block_whatever_the_sweep_that_fetched_them() -> None:
    table, rng = _table(), np.random.default_rng(2)
    columns = Scaler(np.full(6, 0.3), np.full(6, 1.7))
    scaler = MetricScaler(columns, rng.standard_normal((6, 3)))
    held = RowCache(before_metric(table, columns), Session(ThreadExecutor(1)))
    held.fetch(np.arange(0, 5000, 2))
    mapped = held.mapped_by(scaler, np.dtype(np.float32)).get(np.arange(4999, -1, -1))
    assert mapped.X.dtype == np.float32
    np.testing.assert_array_equal(mapped.X[::-1], table.with_scaler(scaler).read(0, 5000).X)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("scaled", [True, False])
def test_rows_before_a_map_are_held_as_stored_and_have_the_bits_of_a_block(dtype: str, scaled: bool) -> None:
    X = np.random.default_rng(3).integers(0, 255, (5000, 6)).astype(dtype)
    if X.dtype.kind == "f":
        X /= 7
    table, columns = open_table(X, np.arange(5000.0)), Scaler(np.full(6, 90.3), np.full(6, 41.7))
    before = before_metric(table, columns) if scaled else as_stored(table)
    cache, rows = RowCache(before, Session(ThreadExecutor(2))), np.arange(4999, -1, -2)
    cache.fetch(rows)
    held = cache.held(rows)
    assert held.X.dtype == np.float64
    np.testing.assert_array_equal(held.X, before.read(0, 5000).X[rows])
    np.testing.assert_array_equal(held.Y[:, 0], rows)
    assert [part.X.dtype for part in cache._parts] == [np.dtype(dtype)]
    assert cache.get(np.zeros(0, np.int64)).X.shape == (0, 6)
    mapped = cache.mapped_by(None, table.dtype).get(rows)
    np.testing.assert_array_equal(mapped.X, before.read(0, 5000).X[rows].astype(table.dtype))


def test_rows_that_nobody_may_write_are_scaled_into_others() -> None:
    """Sums that came over the network may be read-only."""
    table = _table().with_scaler(Scaler(np.full(6, 0.3), np.full(6, 1.7)))
    X = _table().read(0, 5000).X.copy()
    X.setflags(write=False)
    found = row_cache._scaled(X, table)
    np.testing.assert_array_equal(found, table.read(0, 5000).X)
    np.testing.assert_array_equal(X, _table().read(0, 5000).X)


def test_a_few_more_rows_take_no_copy_of_those_that_are_held() -> None:
    table = _table(20_000, 200)
    cache = RowCache(table, Session(ThreadExecutor(1)))
    cache.fetch(np.arange(15_000))
    tracemalloc.start()
    cache.fetch(np.arange(15_000, 15_100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 15_000 * 200 * 4


@given(st.lists(st.integers(0, 400), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_draws_have_no_more_rows_together_than_is_counted(draws: list[int], seed: int) -> None:
    rng, m = np.random.default_rng(seed), 300
    parts: list[Any] = [rng.choice(m, min(size, m), replace=False) for size in draws]
    together = len(np.unique(np.concatenate(parts)))
    assert together <= distinct_rows(draws, m) <= min(sum(draws), m)
