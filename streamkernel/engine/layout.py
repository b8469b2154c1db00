"""Blocks and spans: how a sweep cuts the rows. Set by the table's layout and the reduction, never by the cluster.

A block is the unit of work of the kernel loop and BLAS. A span is the unit of one task, which reads and sums it: whole
chunks, in stored order. Equal tables and reductions are cut equally on every machine, which is half of the promise of
equal bits; the tree is the other half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

_SCRATCH_BYTES = 56 << 20
_MIN_BLOCK, _MAX_BLOCK = 2048, 8192  # SYRK needs some 2,000 rows to run at the machine's rate
_ROWS_BYTES = (
    256 << 20
)  # limit on the rows themselves, which from some thousand features on take more memory than their kernel block
_LEAST_BLOCK = 64
_SPAN_FLOPS = 4e10  # about a second of one core
_MIN_SPAN = 4096
_WORTH_SHARING = 1e9  # operations, below which a second thread gains nothing
_MIN_SPANS, _MAX_SPANS = 16, 256  # enough for all threads; few enough that waiting states take little memory


@dataclass(frozen=True)
class Layout:
    """Spans of rows and the size of the blocks within them."""

    spans: list[tuple[int, int]]
    block_rows: int


def block_rows(scratch_bytes: Callable[[int], int], multiple: int = 1, row_bytes: int = 0) -> int:
    """Rows of a block: the largest power of two with a small scratch, at least 2,048; fewer for wide rows.

    If rows belong together in groups of `multiple`, it is the number of rows in whole groups, at least one group.

    Parameters
    ----------
    row_bytes : bytes of a row as read and as cast (`TableShape.cut_bytes`).
    """
    rows = _MAX_BLOCK
    while rows > _MIN_BLOCK and scratch_bytes(rows) > _SCRATCH_BYTES:
        rows //= 2
    while rows > _LEAST_BLOCK and rows * row_bytes > _ROWS_BYTES:
        rows //= 2
    return max(rows // multiple, 1) * multiple


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


def span_rows(m: int, flops_per_row: float) -> int:
    """Rows of a span, before rounding to whole chunks, for m rows of `flops_per_row` operations each."""
    by_work = int(_SPAN_FLOPS / max(flops_per_row, 1.0))
    rows = max(_MIN_SPAN, min(by_work, -(-m // _MIN_SPANS)), -(-m // _MAX_SPANS))
    if rows > _MIN_SPAN:
        return rows
    # Few rows: a power of two of equal spans, so that two, four or eight threads share them evenly.
    shares = 1 << max(round(math.log2(max(m, 1) / _MIN_SPAN)), int(m * flops_per_row > _WORTH_SHARING))
    return max(1, m // shares)
