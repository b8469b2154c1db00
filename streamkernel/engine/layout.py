"""Blocks and spans: how a sweep cuts the rows. Set by the table's layout and the reduction alone.

A block is the unit of work of the kernel loop and BLAS. A span is neighbouring rows, in stored order. Its state is a
leaf of the tree (`_tree.py`). Equal tables and reductions are cut equally on every machine and for every cluster, which
is half of the promise of equal bits; the tree is the other half.

Blocks are folded in order into the state of their span, on the worker that computes them; states are combined in pairs.
The number of spans L follows from the work F of the sweep::

    F < 16 s of a core          L = 16, or a power of two where rows are few: two, four, eight threads share evenly
    F < 4.5 h                   L = F / 1 s: a thousand threads have 16 each where m = 1e9 and n = 1,000, and those that
                                end first wait for 1/16 of the sweep at most
    above                       L = 16,384

From 2,048 spans on they grow to 16,384 rows, or to five seconds where these take longer: a state of many functions (n >
1,500) is not added for less. A task of a cluster has several spans where a scheduler could not hand them out singly
(`_task_leaves.py`).

Spans are whole chunks, so that each chunk is read once. The few spans of a short sweep are equal instead where that
costs little reading (`equal_leaves`): with 18 chunks in 16 leaves, one of two threads would have 10 of them.

A row counts as its operations or its bytes, whichever takes longer (object stores give a core some 100 MB/s), so that
passes that only read are shared, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from streamkernel.reductions import Reduction, RowMap
from streamkernel.reductions.contract import AnyReduction, Divided

# Blocks of this size are as fast as any for 300 to 2,000 functions, and up to a tenth faster than of 56 MiB: SYRK finds
# more of them in the caches.
_SCRATCH_BYTES = 20 << 20
_MIN_BLOCK, _MAX_BLOCK = 2048, 8192  # SYRK needs some 2,000 rows to run at the machine's rate
# Of passes that do little with a row: every operation on a block takes the interpreter's lock, and with blocks of 8,192
# rows two threads that gather and count rows take 1.5 times as long.
_MAX_LIGHT_BLOCK, _LIGHT_FLOPS = 16_384, 2000.0
_ROWS_BYTES = (
    256 << 20
)  # limit on the rows themselves, which from some thousand features on take more memory than their kernel block
_LEAST_BLOCK = 64
_SHORT_SPAN, _LONG_SPAN = 4e10, 2e11  # operations: about one second and five of one core
_LONG_ROWS = 16_384  # n^2 operations each, beside which the 24 n^2 bytes of a sum take little time
_BYTE_FLOPS = 400  # operations in the time that a core takes to fetch and decode a byte
_MIN_SPAN = 4096
_MOST_READING = 0.25  # of the work of a sweep, that chunks which are read twice may take; it runs beside the work
_WORTH_SHARING = 1e9  # operations, below which a second thread gains nothing
_MIN_SPANS, _SHORT_SPANS, _MAX_SPANS = 16, 2048, 16_384
_WORTH_SENDING = 4e10  # operations, about a second of a core, below which a sample is not sent to workers
_WORTH_DIVIDING = 4e12  # operations of a fit's sums: some minutes of a core, below which few workers are at work


@dataclass(frozen=True)
class Layout:
    """Spans of rows and the size of the blocks within them."""

    spans: list[tuple[int, int]]
    block_rows: int


def leaf_count(
    rows: int, flops_per_row: float, row_bytes: int = 0, chunks: int | None = None, chunk_rows: int = 0
) -> int:
    """Number of leaves of a sweep over `rows` rows, before any row is cut.

    Parameters
    ----------
    row_bytes : bytes of a row as stored (`TableShape.row_bytes`).
    chunks : number of chunks, of which a leaf has at least one unless they are cut (`equal_leaves`); None where they
        are not known, or for outputs of rows.
    chunk_rows : rows of a chunk.
    """
    each = span_rows(rows, flops_per_row, row_bytes)
    if chunks is None:
        return max(1, -(-rows // each))
    return equal_leaves(rows, flops_per_row, row_bytes, chunk_rows) or max(1, min(rows // each, chunks))


def equal_leaves(rows: int, flops_per_row: float, row_bytes: int, chunk_rows: int) -> int:
    """Number of leaves of a sweep whose spans are equal, and therefore parts of chunks; 0 if they are whole chunks.

    They are equal where spans are few, so that a chunk more or less is much of one, and where the chunks that two
    spans share are read in a small part of the time that the work takes.
    """
    leaves = rows // span_rows(rows, flops_per_row, row_bytes)
    again = (leaves - 1) * min(chunk_rows, rows) * float(_BYTE_FLOPS * row_bytes)
    return leaves if 1 < leaves <= _MIN_SPANS and again <= _MOST_READING * rows * flops_per_row else 0


def equal_spans(start: int, stop: int, count: int) -> list[tuple[int, int]]:
    """So many spans of rows [start, stop), equal but for a row."""
    return list(pairwise(start + (stop - start) * index // count for index in range(count + 1)))


def block_rows(
    scratch_bytes: Callable[[int], int], multiple: int = 1, row_bytes: int = 0, flops_per_row: float = math.inf
) -> int:
    """Rows of a block: the largest power of two with a small scratch, at least 2,048; fewer for wide rows.

    If rows belong together in groups of `multiple`, it is the number of rows in whole groups, at least one group.

    Parameters
    ----------
    row_bytes : bytes of a row as read and as cast (`TableShape.cut_bytes`).
    """
    rows = _MAX_LIGHT_BLOCK if flops_per_row < _LIGHT_FLOPS else _MAX_BLOCK
    while rows > _MIN_BLOCK and scratch_bytes(rows) > _SCRATCH_BYTES:
        rows //= 2
    while rows > _LEAST_BLOCK and rows * row_bytes > _ROWS_BYTES:
        rows //= 2
    return max(rows // multiple, 1) * multiple


def block_rows_of(work: AnyReduction | RowMap, row_bytes: int) -> int:
    """Rows of the blocks of this work; `row_bytes` as of `block_rows`.

    Light blocks are for sums: parts of values keep their sizes, so that few rows are computed for one.
    """
    if isinstance(work, Reduction):
        return block_rows(work.scratch_bytes, work.row_multiple, row_bytes, work.flops_per_row())
    return block_rows(work.scratch_bytes, 1, row_bytes)


def aligned_spans(spans: list[tuple[int, int]], multiple: int) -> list[tuple[int, int]]:
    """The spans with their borders moved to the nearest multiple of rows, counted from the first row.

    Spans that lose all their rows are left out, and a chunk across a border is read by both of its spans.
    """
    first, last = spans[0][0], spans[-1][1]
    borders = {first + (stop - first + multiple // 2) // multiple * multiple for _, stop in spans[:-1]}
    return list(pairwise(sorted({first, *(border for border in borders if border < last), last})))


def aligned_blocks(start: int, stop: int, rows: int, multiple: int) -> list[tuple[int, int]]:
    """Blocks of at most `rows` rows: whole multiples, nearly equal in size; the last one has the remainder."""
    units = -(-(stop - start) // multiple)
    count = -(-units // max(rows // multiple, 1))
    return list(pairwise([*(start + units * i // count * multiple for i in range(count)), stop]))


def worth_sending(flops: float) -> bool:
    """Whether a pass of so many operations over a sample in memory is worth the way to the workers of a cluster."""
    return flops >= _WORTH_SENDING


def worth_dividing(flops: float) -> bool:
    """Whether sums over a sample are made divisible among many workers, in a fit whose sweep has so many operations.

    Products of blocks of columns take a quarter longer than one product of all columns.
    """
    return flops >= _WORTH_DIVIDING


@dataclass(frozen=True)
class Parts:
    """The parts of sums over a sample that many workers compute beside each other (`Reduction.divided`).

    Attributes
    ----------
    count : number of parts, each of which needs all rows.
    flops_per_row : operations of a row for one part.
    kernel_columns : number of kernel entries of a row of a part.
    """

    count: int
    flops_per_row: float
    kernel_columns: int

    @classmethod
    def of(cls, divided: Divided[Any]) -> Parts:
        """The parts of a divided reduction."""
        return cls(divided.parts, divided.reduction.flops_per_row(), divided.kernel_columns)

    def pay(self, leaves: int, flops_per_row: float, threads: int, workers: int) -> bool:
        """Whether the workers end in less than half the time with a part in each task.

        The leaves are a power of two: then those of a part are a branch of the tree, and are added as without parts.

        Parameters
        ----------
        leaves, flops_per_row : of the whole sums.
        threads, workers : all threads of the workers, and the number of workers.
        """
        # A worker has planned memory for one task a leaf, and more threads would have a part each.
        if not workers or leaves & (leaves - 1) or threads > workers * leaves:
            return False
        whole = -(-leaves // threads) * flops_per_row
        return -(-self.count * leaves // threads) * self.flops_per_row < 0.5 * whole


def leaf_seconds(layout: Layout, flops_per_row: float, row_bytes: int) -> float:
    """Seconds of a core that a leaf may take, before one has run: twice those of the core that the cut counts with."""
    rows = layout.spans[-1][1] - layout.spans[0][0]
    return 2.0 * rows / len(layout.spans) * max(flops_per_row, float(_BYTE_FLOPS * row_bytes)) / _SHORT_SPAN


def span_rows(m: int, flops_per_row: float, row_bytes: int = 0) -> int:
    """Rows of a span, before rounding to whole chunks, for m rows of `flops_per_row` operations and `row_bytes` bytes.

    At least 4,096, of which SYRK makes two blocks: rows of more than 5e7 operations (n > 7,000) make longer spans.
    """
    work = max(flops_per_row, float(_BYTE_FLOPS * row_bytes), 1.0)
    by_work = int(max(_SHORT_SPAN, min(m * work / _SHORT_SPANS, _LONG_ROWS * work, _LONG_SPAN)) / work)
    rows = max(_MIN_SPAN, min(by_work, -(-m // _MIN_SPANS)), -(-m // _MAX_SPANS))
    if rows > _MIN_SPAN:
        return rows
    # Few rows: a power of two of equal spans, so that two, four or eight threads share them evenly.
    shares = 1 << max(round(math.log2(max(m, 1) / _MIN_SPAN)), int(m * flops_per_row > _WORTH_SHARING))
    return max(1, m // shares)
