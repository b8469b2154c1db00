"""How many neighbouring leaves a task of a cluster has: few tasks for the scheduler, short ones for its workers.

A task has 2^k neighbouring leaves, a node of the fixed tree (`_tree.py`), and adds them as the tree does. The number
changes no bit, and may therefore follow the cluster and the time that leaves take.

With L leaves of t seconds on S threads, of sizes from z to a, a scheduler that hands out a task in u seconds, and K
tasks, of which each needs at most 4/3 with the sums, a sweep takes::

    T(z, a) = max(ceil(L / (S z)) z t + min(S, ceil(L / z)) u,  4/3 K u + z t)

The sizes with the least T are taken, the smallest ones that have it. Tasks are at first of a leaves, and become smaller
as soon as less than two of a size are left for a thread, so that all threads end together. A task takes at most eight
seconds: so much a lost worker costs at most.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_MOST_SECONDS = 8.0  # of a task
_SCHEDULER = 3e-3  # seconds for a task, of a scheduler that shares a slow machine with others
_SUMS = 4.0 / 3.0
_LAST = 2  # tasks of a size that each thread has, before smaller ones begin
_EQUAL = 1.0 + 1e-9


@dataclass(frozen=True)
class TaskSizes:
    """The sizes of tasks, in leaves: powers of two.

    Attributes
    ----------
    least, most : size of the last tasks, and of the first.
    threads : threads of all workers.
    """

    least: int
    most: int
    threads: int

    def size(self, left: int) -> int:
        """Size of the next task, if so many leaves are left."""
        size = self.most
        while size > self.least and left < _LAST * self.threads * size:
            size //= 2
        return size

    def counts(self, leaves: int) -> dict[int, int]:
        """Number of tasks of each size, the largest first."""
        found: dict[int, int] = {}
        size, left = self.most, leaves
        while left > 0:
            last = size == self.least
            count = -(-left // size) if last else (left - _LAST * self.threads * size) // size + 1
            if count > 0:
                found[size] = count
                left -= size * count
            size = max(size // 2, self.least)
        return found

    def tasks(self, leaves: int) -> Iterator[range]:
        """The leaves of each task, in their order."""
        first = 0
        while first < leaves:
            stop = min(first + self.size(leaves - first), leaves)
            yield range(first, stop)
            first = stop


def task_sizes(leaves: int, threads: int, leaf_seconds: float, branch: int) -> TaskSizes:
    """The sizes with the least T above.

    Parameters
    ----------
    branch : leaves of a branch, whose sum comes to the driver; a task has no more.
    """
    threads, best, least_seconds = max(threads, 1), TaskSizes(1, 1, max(threads, 1)), math.inf
    top = 1
    while 2 * top <= branch and 2 * top * leaf_seconds <= _MOST_SECONDS:
        top *= 2
    for least in _powers(top):
        rounds = -(-leaves // (threads * least)) * least
        working = rounds * leaf_seconds + min(threads, -(-leaves // least)) * _SCHEDULER
        for most in (size for size in _powers(top) if size >= least):
            sizes = TaskSizes(least, most, threads)
            count = sum(sizes.counts(leaves).values())
            seconds = max(working, _SUMS * count * _SCHEDULER + least * leaf_seconds)
            if seconds * _EQUAL < least_seconds:
                best, least_seconds = sizes, seconds
    return best


def _powers(top: int) -> list[int]:
    return [1 << power for power in range(top.bit_length())]


class LeafCut:
    """Cuts the leaves of a running sweep into tasks, by what its first tasks take.

    Parameters
    ----------
    branch : as of `task_sizes`.
    leaf_seconds : what a leaf may take, as long as none has ended.
    """

    def __init__(self, leaves: int, branch: int, leaf_seconds: float) -> None:
        self._leaves, self._branch, self._seconds = leaves, branch, leaf_seconds
        self._known, self._first = False, 0
        self._sizes: TaskSizes | None = None

    def __bool__(self) -> bool:
        """Whether leaves are left."""
        return self._first < self._leaves

    def next(self, threads: int) -> range:
        """The leaves of the next task."""
        first = self._first
        if self._sizes is None or self._sizes.threads != max(threads, 1):
            self._sizes = task_sizes(self._leaves - first, threads, self._seconds, self._branch)
        size = self._sizes.size(self._leaves - first)
        if first:
            size = min(size, first & -first)  # a node of the tree begins at a multiple of its size
        self._first = min(first + size, self._leaves)
        return range(first, self._first)

    def took(self, seconds: float, leaves: int) -> None:
        """A task of so many leaves has ended so many seconds after it was given out; the shortest time counts.

        A task waits for a thread before it begins, and the first ones wait the least.
        """
        each = seconds / leaves
        if not self._known or each < self._seconds:
            self._seconds, self._known, self._sizes = each, True, None


class FixedCut:
    """Tasks in a given order, of which none is cut anew."""

    def __init__(self, tasks: Iterable[range]) -> None:
        self._tasks = deque(tasks)

    def __bool__(self) -> bool:
        """Whether tasks are left."""
        return bool(self._tasks)

    def next(self, threads: int) -> range:
        """The leaves of the next task."""
        return self._tasks.popleft()

    def took(self, seconds: float, leaves: int) -> None:
        """Seconds change nothing."""
