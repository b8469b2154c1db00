"""The fixed tree in which states are combined.

Leaves are spans, numbered by the table's layout. Node (level, j) combines (level - 1, 2 j) and (level - 1, 2 j + 1);
a node without a right neighbour is passed up. The states and the order of their sums therefore depend only on the
number of spans, not on workers, threads, or the order of finishing.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

S = TypeVar("S")


def _width(leaves: int, level: int) -> int:
    """Number of nodes on a level: ceil(leaves / 2^level)."""
    return -(-leaves // (1 << level))


def parent_is_complete(leaves: int, level: int, index: int) -> bool:
    """Whether node (level, index) has no sibling to wait for."""
    return index % 2 == 0 and index + 1 == _width(leaves, level)


class PairingTree(Generic[S]):
    """Combines leaves as they arrive, in the fixed tree; holds only states whose sibling has not arrived.

    Parameters
    ----------
    leaves : number of leaves, at least one.
    combine : function of the left and the right state.
    """

    def __init__(self, leaves: int, combine: Callable[[S, S], S]) -> None:
        self._leaves = leaves
        self._combine = combine
        self._waiting: dict[tuple[int, int], S] = {}
        self._lock = Lock()
        self._root: list[S] = []

    def add(self, index: int, state: S, level: int = 0) -> None:
        """Add a leaf, and combine it with siblings that have arrived. Thread-safe; combining runs outside the lock.

        Parameters
        ----------
        level : that of a node whose leaves somebody else has combined, in the same tree; `index` is its number there.
        """
        while _width(self._leaves, level) > 1:
            if not parent_is_complete(self._leaves, level, index):
                with self._lock:
                    sibling = self._waiting.pop((level, index ^ 1), None)
                    if sibling is None:
                        self._waiting[(level, index)] = state
                        return
                state = self._combine(sibling, state) if index % 2 else self._combine(state, sibling)
            level, index = level + 1, index // 2
        self._root.append(state)

    def root(self) -> S:
        """The state of all leaves."""
        if len(self._root) != 1:
            raise AssertionError(f"the tree has {len(self._root)} roots: a leaf is missing or came twice")
        return self._root[0]
