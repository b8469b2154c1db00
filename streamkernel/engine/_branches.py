"""The tree of a sweep on a cluster: branches are added up by workers, and their sums by the driver.

A branch is 2^k neighbouring leaves, a node of the fixed tree (`_tree.py`), so that its size changes no bit. What the
driver has is never lost: with a worker go the leaves that it ran, and sums of branches that were not complete. Small
branches lose less. Large ones send less to the driver, and fewer states a second: what one driver takes in while its
workers work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from streamkernel.engine._tree import PairingTree
from streamkernel.reductions import State

F = TypeVar("F")

_BYTES, _STATES = 25e6, 20  # that the driver takes in a second; leaves take a second of a core or more


def branch_leaves(leaves: int, state_bytes: int, threads: int) -> int:
    """Leaves of a branch, a power of two, for a cluster of so many threads."""
    wanted = max(threads * state_bytes / _BYTES, threads / _STATES)
    size = 1
    while size < min(wanted, leaves):
        size *= 2
    return size


class Branches(Generic[F]):
    """Collects the tasks of leaves into branches, and the sums of branches into the sum of all.

    Parameters
    ----------
    leaves : number of leaves.
    size : leaves of a branch, a power of two.
    add_tasks : function for the task that adds the results of two, the left one first.
    add_states : function that adds two states.
    """

    def __init__(
        self, leaves: int, size: int, add_tasks: Callable[[F, F], F], add_states: Callable[[State, State], State]
    ) -> None:
        self._leaves, self._size, self._add_tasks = leaves, size, add_tasks
        self._open: dict[int, tuple[PairingTree[F], int]] = {}  # of each branch its tree, and the leaves it waits for
        self._driver: PairingTree[State] = PairingTree(-(-leaves // size), add_states)

    def of(self, leaf: int) -> int:
        """Number of the branch of a leaf."""
        return leaf // self._size

    def leaves(self, branch: int) -> range:
        """The leaves of a branch."""
        return range(branch * self._size, min((branch + 1) * self._size, self._leaves))

    def add_leaf(self, leaf: int, task: F) -> F | None:
        """Add a leaf that has ended; returns the task of the branch's sum if the branch is then complete.

        A leaf of a complete branch begins this one anew.
        """
        branch = self.of(leaf)
        leaves = self.leaves(branch)
        if branch not in self._open:
            self._open[branch] = PairingTree(len(leaves), self._add_tasks), len(leaves)
        tree, missing = self._open.pop(branch)
        tree.add(leaf - leaves[0], task)
        if missing == 1:
            return tree.root()
        self._open[branch] = tree, missing - 1
        return None

    def add_sum(self, branch: int, state: State) -> None:
        """Add the sum of a branch, as it has come to the driver."""
        self._driver.add(branch, state)

    def root(self) -> State:
        """The sum of all leaves."""
        return self._driver.root()
