"""The tree of a sweep on a cluster: branches are added up by workers, and their sums by the driver.

A branch is 2^k neighbouring leaves, a node of the fixed tree (`_tree.py`), so that its size changes no bit. What the
driver has is never lost: with a worker go the leaves that it ran, and sums of branches that were not complete. Small
branches lose less. Large ones send less to the driver, and fewer states a second: what one driver takes in while its
workers work.

Within a branch a task adds up to eight neighbouring states, in the order of the tree: a third or a seventh of the tasks
that pairs would be. Large states are added in pairs, for the memory of a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from streamkernel.engine._tree import PairingTree
from streamkernel.reductions import State

F = TypeVar("F")

_BYTES, _STATES = 25e6, 20  # that the driver takes in a second
_LEAST_SECONDS = 0.02  # of a leaf, beside the time of a task
_SUM_BYTES, _MOST_SUMMED = 40e6, 8  # states that a task adds: four of n = 1,000


def branch_leaves(leaves: int, state_bytes: int, threads: int, leaf_seconds: float) -> int:
    """Leaves of a branch, a power of two, for a cluster of so many threads.

    Parameters
    ----------
    leaf_seconds : seconds of a thread for a leaf. More than one counts as one: small branches lose less with a worker.
    """
    at_once = threads / min(max(leaf_seconds, _LEAST_SECONDS), 1.0)  # leaves that end in a second
    wanted = max(at_once * state_bytes / _BYTES, at_once / _STATES)
    size = 1
    while size < min(wanted, leaves):
        size *= 2
    return size


def summed_states(state_bytes: int) -> int:
    """Number of states that a task adds, a power of two."""
    count = _MOST_SUMMED
    while count > 2 and count * state_bytes > _SUM_BYTES:
        count //= 2
    return count


def levels_of(branch: int, summed: int, size: int = 1) -> list[tuple[int, int]]:
    """The sums from a task of `size` leaves to its branch: leaves of each, and states that it adds at most."""
    found, nodes = [], 1
    while nodes < branch:
        nodes = min(nodes * summed, branch)
        if nodes > size:
            found.append((nodes, nodes // size))
            size = nodes
    return found


def sum_tasks(counts: dict[int, int], branch: int, summed: int) -> int:
    """Number of tasks that add states, for so many tasks of each size."""
    found, loose = 0, dict(counts)
    for nodes, _ in levels_of(branch, summed):
        below = {size: loose.pop(size) for size in list(loose) if size < nodes}
        made = -(-sum(size * count for size, count in below.items()) // nodes)
        found += made
        loose[nodes] = loose.get(nodes, 0) + made
    return found


class Branches(Generic[F]):
    """Collects the tasks of leaves into branches, and the sums of branches into the sum of all.

    Parameters
    ----------
    leaves : number of leaves.
    size : leaves of a branch, a power of two.
    summed : number of states that a task adds, a power of two.
    add_tasks : function for the task that adds the results of tasks. It gets their leaves, counted from the first leaf
        of the sum, and the tasks.
    add_states : function that adds two states.

    Attributes
    ----------
    sums : the tree of the driver. Its leaves are the sums of branches.
    """

    def __init__(
        self,
        leaves: int,
        size: int,
        summed: int,
        add_tasks: Callable[[Sequence[range], Sequence[F]], F],
        add_states: Callable[[State, State], State],
    ) -> None:
        self._leaves, self._size, self._add_tasks = leaves, size, add_tasks
        self._levels = [nodes for nodes, _ in levels_of(size, summed)]
        self._open: dict[tuple[int, int], dict[int, tuple[range, F]]] = {}  # parts of a sum, by its size and number
        self.sums: PairingTree[State] = PairingTree(-(-leaves // size), add_states)

    def of(self, leaf: int) -> int:
        """Number of the branch of a leaf."""
        return leaf // self._size

    def leaves(self, branch: int) -> range:
        """The leaves of a branch."""
        return self._node(self._size, branch)

    def add_leaves(self, leaves: range, task: F) -> F | None:
        """Add a task that has ended; returns the task of the branch's sum if the branch is then complete.

        A leaf of a complete branch begins this one anew.
        """
        for nodes in self._levels:
            whole = self._node(nodes, leaves.start // nodes)
            if len(leaves) >= len(whole):
                continue
            key = nodes, leaves.start // nodes
            parts = self._open.setdefault(key, {})
            parts[leaves.start] = leaves, task
            if sum(len(part) for part, _ in parts.values()) < len(whole):
                return None
            del self._open[key]
            ordered = [parts[first] for first in sorted(parts)]
            places = [range(part.start - whole.start, part.stop - whole.start) for part, _ in ordered]
            leaves, task = whole, self._add_tasks(places, [each for _, each in ordered])
        return task

    def _node(self, nodes: int, number: int) -> range:
        return range(number * nodes, min((number + 1) * nodes, self._leaves))
