"""The cut: how many leaves a sweep has, for tables from small to a billion rows; a function of shapes alone."""

from __future__ import annotations

from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.engine import Machine, TableShape, layout_of, step_of
from streamkernel.engine.layout import leaf_count, span_rows
from streamkernel.reductions import Moments
from streamkernel.table import open_table

SECOND = 4e10  # operations of one core
RATE = 1e8  # bytes that a core fetches in a second


def flops(n: int) -> float:
    """Of a row: the kernel of ten columns, and SYRK."""
    return n * n + 60.0 * n


@pytest.mark.parametrize(
    ("rows", "n", "leaves", "seconds"),
    [
        (200_000, 1000, (16, 16), (0.0, 1.0)),
        (10**7, 1000, (256, 300), (0.9, 1.1)),
        (10**8, 1000, (2600, 2700), (0.9, 1.1)),
        (10**9, 1000, (16_384, 16_384), (1.0, 2.0)),  # a thousand threads have 16 leaves each
        (10**8, 4000, (8000, 8200), (4.9, 5.1)),  # of 128 MB a state
        (10**10, 1000, (16_384, 16_384), (10.0, 20.0)),
    ],
)
def test_leaves_are_short_and_many(rows: int, n: int, leaves: tuple[int, int], seconds: tuple[float, float]) -> None:
    assert leaves[0] <= leaf_count(rows, flops(n), 48) <= leaves[1]
    assert seconds[0] <= span_rows(rows, flops(n), 48) * flops(n) / SECOND <= seconds[1]


def test_a_pass_that_only_reads_is_shared_too() -> None:
    """Column statistics of a billion rows: 48 GB, of which one leaf fetches about a second's worth."""
    assert leaf_count(10**9, 50.0, 48) > 256
    assert 0.5 < span_rows(10**9, 50.0, 48) * 48 / RATE < 2.0
    table = open_table(da.zeros((10**9, 10), chunks=(10**6, -1), dtype=np.float32))
    assert (
        len(layout_of(Moments(10, 0), table).spans) == step_of("m", Moments(10, 0), table, kernel_columns=0).spans > 256
    )


@given(st.integers(1, 10**10), st.floats(1.0, 1e8), st.integers(0, 10**5))
def test_a_cut_is_within_its_bounds(rows: int, flops: float, row_bytes: int) -> None:
    assert 1 <= leaf_count(rows, flops, row_bytes) <= 16_385
    assert span_rows(rows, flops, row_bytes) >= min(rows // 2, 2896)


def test_more_rows_never_make_fewer_leaves() -> None:
    counts = [leaf_count(int(m), flops(1000), 48) for m in np.geomspace(10**6, 10**10, 200)]
    assert all(a <= b for a, b in pairwise(counts))


def test_a_leaf_has_one_chunk_at_least() -> None:
    assert leaf_count(10**9, flops(1000), 48, chunks=100) == 100


def test_the_plan_has_the_layouts_number_of_tasks() -> None:
    shape = TableShape(10**8, 10, 10, 1, 4, 65_536, False, chunks=1526)
    assert leaf_count(shape.rows, flops(300), shape.row_bytes, shape.chunks) <= 1526
    assert Machine(0, 1).driver_threads == 1
