"""Sets of rows as runs [first, last) of neighbouring row numbers: sorted, apart from each other, none empty."""

from __future__ import annotations

from collections.abc import Iterable

Runs = tuple[tuple[int, int], ...]


def joined(runs: Iterable[tuple[int, int]]) -> Runs:
    """The union of these runs."""
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
    """The part of these runs in [start, stop)."""
    return joined((max(first, start), min(last, stop)) for first, last in runs)


def without(runs: Runs, start: int, stop: int) -> Runs:
    """The rows of [start, stop) that are in none of these runs."""
    rest = []
    for first, last in clipped(runs, start, stop):
        rest.append((start, first))
        start = last
    return joined([*rest, (start, stop)])


def count(runs: Iterable[tuple[int, int]]) -> int:
    """Number of rows."""
    return sum(last - first for first, last in runs)
