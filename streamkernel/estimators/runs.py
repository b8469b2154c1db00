"""Sets of rows as runs [first, last) of neighbouring row numbers: sorted, apart from each other, none empty."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Runs", "clipped", "count", "joined", "without"]

Runs = tuple[tuple[int, int], ...]


def joined(runs: Iterable[tuple[int, int]]) -> Runs:
    """The rows of any of these."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if first >= last:
            continue
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def clipped(runs: Iterable[tuple[int, int]], start: int, stop: int) -> Runs:
    """Those of the rows that lie in [start, stop)."""
    return joined((max(first, start), min(last, stop)) for first, last in runs)


def without(runs: Runs, start: int, stop: int) -> Runs:
    """The rows of [start, stop) that are not among these."""
    rest = []
    for first, last in clipped(runs, start, stop):
        rest.append((start, first))
        start = last
    return joined([*rest, (start, stop)])


def count(runs: Iterable[tuple[int, int]]) -> int:
    """How many rows."""
    return sum(last - first for first, last in runs)
