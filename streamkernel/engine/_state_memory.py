"""Memory of the states of a sweep, which later leaves use again.

A state of n = 1,000 functions is 8 MB. In new memory, the system fills its pages with zeros while the first block is
added, and tells the other cores of each: 16 leaves took .1 s of a sweep of 1.8 s. A state that was added to another one
leaves such memory, at the moment at which its thread begins the next leaf.
"""

from __future__ import annotations

from threading import Lock

from streamkernel.reductions import State
from streamkernel.reductions.contract import AnyReduction


class StateMemory:
    """Empty states of one reduction, in the memory of states that were added to others. Thread-safe.

    No more states are held than are needed at one time: a new one is made only where none is spare.
    """

    def __init__(self, reduction: AnyReduction) -> None:
        self._reduction = reduction
        self._spare: list[State] = []
        self._lock = Lock()

    def empty(self) -> State | None:
        """The state of no rows; None for a reduction that makes its first state from a block."""
        with self._lock:
            state = self._spare.pop() if self._spare else None
        found = None if state is None else self._reduction.emptied(state)
        return self._reduction.empty() if found is None else found

    def absorb(self, left: State, right: State) -> State:
        """`Reduction.absorb`, which keeps the memory of `right`."""
        found = self._reduction.absorb(left, right)
        if found is left:  # a sum in place, which holds nothing of the right state
            with self._lock:
                self._spare.append(right)
        return found
