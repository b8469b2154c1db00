"""The cut: how many leaves a sweep has, for tables from small to a billion rows; a function of shapes alone."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.basis import Basis
from streamkernel.engine import Machine, Session, TableShape, layout_of, step_of
from streamkernel.engine.layout import equal_leaves, leaf_count, span_rows
from streamkernel.kernels import Gaussian
from streamkernel.reductions import Moments
from streamkernel.reductions.sums import NormalEquations
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


@cache
def basis(n: int, columns: int) -> Basis:
    return Basis(Gaussian(0.5), np.random.default_rng(1).standard_normal((n, columns)), np.arange(n))


def sums(m: int, n: int, columns: int) -> NormalEquations:
    """The sums of n functions, for m rows."""
    return NormalEquations.of(basis(n, columns), np.zeros(1), m)


@given(
    m=st.integers(1, 300_000),
    n=st.sampled_from([10, 100, 500, 1000]),
    chunk=st.integers(1, 400_000),
    columns=st.sampled_from([4, 10, 200]),
)
def test_spans_are_equal_or_whole_chunks(m: int, n: int, chunk: int, columns: int) -> None:
    chunk = max(chunk, -(-m // 500))  # few chunks, for the test's own time
    table = open_table(da.zeros((m, columns), chunks=(chunk, -1), dtype=np.float32), da.zeros(m, chunks=chunk))
    work = sums(m, n, columns)
    layout, step = layout_of(work, table), step_of("sums", work, table, kernel_columns=n)
    sizes = [stop - start for start, stop in layout.spans]
    assert sum(sizes) == m
    assert [stop for _, stop in layout.spans[:-1]] == [start for start, _ in layout.spans[1:]]
    if equal_leaves(m, work.flops_per_row(), TableShape.of(table).row_bytes, chunk):
        assert max(sizes) - min(sizes) <= 1
        assert len(sizes) == step.spans <= 16
    else:
        assert all(stop % chunk == 0 for _, stop in layout.spans[:-1])
        assert len(sizes) <= (step.spans or 0)


def test_sums_of_short_sweeps_are_the_same_for_every_chunking() -> None:
    """16 equal spans, also of three chunks, on which three threads at most would otherwise work."""
    rng = np.random.default_rng(0)
    m, n = 70_000, 600
    X, y = rng.standard_normal((m, 4)), rng.standard_normal(m)
    work = sums(m, n, 4)
    found = []
    for chunk in (25_000, 16_384, 999):
        table = open_table(da.from_array(X, chunks=(chunk, -1)), da.from_array(y, chunks=chunk))
        assert [stop - start for start, stop in layout_of(work, table).spans] == [m // 16] * 16
        found.append(Session().sweep(work, table, "sums"))
    for other in found[1:]:
        np.testing.assert_array_equal(other.H, found[0].H)


def test_chunks_that_take_long_to_read_are_read_once() -> None:
    assert equal_leaves(600_000, flops(500), 84, 32_768)
    assert not equal_leaves(600_000, flops(500), 84, 600_000)  # each leaf would read all rows
    assert not equal_leaves(600_000, flops(500), 8000, 32_768)  # rows of a thousand columns
    assert not equal_leaves(600_000, flops(30), 84, 32_768)
    assert not equal_leaves(10**8, flops(1000), 84, 32_768)  # 2,600 leaves: one chunk more or less is little
