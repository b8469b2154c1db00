"""Sums of a pool by pairs of blocks: those of plain NumPy, and the same bits from one task or from one a pair."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise
from typing import Any

import naive
import numpy as np
import pytest
from numpy.typing import NDArray
from problems import pool_columns

from streamkernel.engine import ThreadExecutor
from streamkernel.engine.layout import Layout
from streamkernel.kernels import Gaussian
from streamkernel.reductions.pools import PoolBlocks, PoolGram, PoolSums
from streamkernel.table import Table, open_table, repeated

SUMS = ("C", "E", "F", "H", "g", "YY", "S", "weight", "trace")
Rows = tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]


def rows_of(m: int, dtype: Any = np.float32, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, 3)).astype(dtype), rng.standard_normal((m, 2)), rng.uniform(0.1, 3.0, m)


def swept(work: PoolBlocks | PoolGram, table: Table, layout: Layout) -> dict[str, NDArray[Any]]:
    return ThreadExecutor(1).reduce(work, table, layout, lambda rows: None)


def divided(whole: PoolBlocks, table: Table, layout: Layout, threads: int = 1) -> PoolSums:
    parts = whole.divided(table.n_rows)
    starts = range(0, parts.parts * table.n_rows, table.n_rows)
    spans = [(start + first, start + stop) for start in starts for first, stop in layout.spans]
    again = Layout(spans, layout.block_rows)
    work = pickle.loads(pickle.dumps(parts.reduction))  # as a worker gets it
    order = np.random.default_rng(threads).permutation
    executor = ThreadExecutor(threads, order=lambda leaves: order(leaves).tolist())
    return work.finalize(executor.reduce(work, repeated(table, parts.parts), again, lambda rows: None))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "k"), [(0, 9), (5, 9), (7, 1), (7, 3), (1, 40)])
def test_the_sums_are_those_of_their_formulas(n: int, k: int, weighted: bool) -> None:
    X, Y, w = rows_of(120, np.float64)
    columns = pool_columns(X, Y, range(n), range(n, n + k), Gaussian(1.5))
    table = open_table(X, Y, weights=w if weighted else None)
    whole = PoolBlocks(columns)
    found = whole.finalize(swept(whole, table, Layout([(0, 60), (60, 120)], 32)))
    W = w[:, None] if weighted else np.ones((len(X), 1))
    K = naive.gaussian(X, X, 1.5)
    G = np.linalg.solve(np.linalg.cholesky(K[:n, :n]), K[:n]).T if n else np.zeros((len(X), 0))
    R = K[:, n : n + k] - G @ G[n : n + k].T
    expected = {
        "C": R.T @ (W * R), "E": G.T @ (W * R), "F": R.T @ (W * Y), "H": G.T @ (W * G), "g": G.T @ (W * Y),
        "YY": Y.T @ (W * Y), "S": R[n : n + k], "weight": W.sum(), "trace": W.sum(),
    }  # fmt: skip
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-9, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize(("n", "k"), [(0, 9), (6, 2), (11, 37)])
@pytest.mark.parametrize("leaves", [1, 2, 4])
def test_a_pair_in_each_task_gives_the_same_bits(leaves: int, n: int, k: int, threads: int) -> None:
    X, Y, w = rows_of(203)
    columns = pool_columns(X, Y, range(n), range(n, n + k), Gaussian(1.5), np.dtype(np.float32))
    table, whole = open_table(X, Y, weights=w), PoolBlocks(columns)
    edges = [203 * leaf // leaves for leaf in range(leaves + 1)]
    layout = Layout(list(pairwise(edges)), 40)
    here = whole.finalize(swept(whole, table, layout))
    there = divided(PoolBlocks(replace(columns)), table, layout, threads)
    for name in SUMS:
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name), err_msg=name)


def test_a_task_of_a_pair_holds_and_does_a_part() -> None:
    X, Y, _ = rows_of(64)
    whole = PoolBlocks(pool_columns(X, Y, range(8), range(8, 48), Gaussian(1.0), np.dtype(np.float32)))
    part = whole.divided(64)
    assert part.parts == 15  # pairs of five blocks
    table = open_table(X, Y)
    state = swept(whole, table, Layout([(0, 64)], 64))
    assert sum(array.nbytes for array in state.values()) == whole.state_bytes()
    for time in range(part.parts):
        found = swept(part.reduction, repeated(table, part.parts), Layout([(64 * time, 64 * time + 64)], 64))
        assert len([name for name in found if name != "totals"]) == 1
        # The share is that of a pair in the mean; the blocks differ.
        assert sum(array.nbytes for array in found.values()) <= 3 * part.reduction.share_bytes(0.0)
    assert part.reduction.share_bytes(1.0) == whole.state_bytes()
    assert part.reduction.flops_per_row() < 0.5 * whole.flops_per_row()
    # A process without parts needs no more than by the whole matrix.
    assert whole.state_bytes() < PoolGram(whole.columns).state_bytes()
    assert whole.flops_per_row() == PoolGram(whole.columns).flops_per_row()


def test_other_sums_have_no_parts() -> None:
    X, Y, _ = rows_of(10)
    assert PoolGram(pool_columns(X, Y, range(2), range(2, 5))).divided(10) is None


def test_single_precision_is_that_of_the_whole_matrix() -> None:
    X, Y, _ = rows_of(300)
    columns = pool_columns(X, Y, range(10), range(20, 60), Gaussian(1.0), np.dtype(np.float32))
    table, layout = open_table(X, Y), Layout([(0, 300)], 128)
    found, known = (work.finalize(swept(work, table, layout)) for work in (PoolBlocks(columns), PoolGram(columns)))
    for name in SUMS:
        value = getattr(known, name)
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-5, atol=1e-5 * float(np.abs(value).max()))
