"""Memory of the states of a sweep, which later leaves use again.

An open state of n = 1,000 functions is 8 MB. In new memory, the system fills its pages with zeros while the first block
is added, and tells the other cores of each: 16 leaves took .1 s of a sweep of 1.8 s. Each thread has one open state,
which it seals at the end of a leaf and empties for the next one. Sealed states, which wait, are half as large; those
that were added to others leave their memory to later ones.
"""

from __future__ import annotations

from threading import Lock

from streamkernel.reductions import State
from streamkernel.reductions.contract import AnyReduction


class StateMemory:
    """Empty states of one reduction, in the memory of states that nobody needs any more. Thread-safe.

    No more states are held than are needed at one time: a new one is made only where none is spare.
    """

    def __init__(self, reduction: AnyReduction) -> None:
        self._reduction, self._seals = reduction, reduction.lower_bytes > 0
        self._spare: list[State] = []  # open ones
        self._spare_sealed: list[State] = []
        self._lock = Lock()

    def empty(self) -> State | None:
        """The open state of no rows; None for a reduction that makes its first state from a block."""
        state = self._taken(self._spare)
        found = None if state is None else self._reduction.emptied(state)
        return self._reduction.empty() if found is None else found

    def sealed(self, state: State) -> State:
        """`Reduction.sealed`, which keeps the memory of the open state; that itself where nothing is to be sealed."""
        if not self._seals:
            return state
        found = self._reduction.sealed(state, self._taken(self._spare_sealed))
        if self._reduction.adds_arrays:
            # What was not sealed is in both: the open state would be emptied under the sealed one.
            found = {name: values.copy() if name in state else values for name, values in found.items()}
            with self._lock:
                self._spare.append(state)
        return found

    def absorb(self, left: State, right: State) -> State:
        """`Reduction.absorb` of sealed states, which keeps the memory of `right`."""
        found = self._reduction.absorb(left, right)
        if found is left:  # a sum in place, which holds nothing of the right state
            with self._lock:
                (self._spare_sealed if self._seals else self._spare).append(right)
        return found

    def _taken(self, spare: list[State]) -> State | None:
        with self._lock:
            return spare.pop() if spare else None
