"""The tasks of workers: functions of a payload that is sent once per sweep, and the warm-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamkernel.engine._chunk_writer import ChunkWriter
from streamkernel.engine._state_memory import StateMemory
from streamkernel.engine._tasks import Written, map_spans, write_span
from streamkernel.engine._tree import PairingTree
from streamkernel.engine.compiling import LOOPS
from streamkernel.engine.peak_memory import limit_heaps
from streamkernel.linalg import BlockMemory, single_threaded_blas
from streamkernel.reductions import State
from streamkernel.reductions.contract import AnyReduction
from streamkernel.table import Table


def warm_up() -> None:
    """Load the package and its compiled loops, so that the first sweep does not pay for it."""
    limit_heaps()
    with single_threaded_blas():
        LOOPS.compile()


class Payload:
    """What all tasks of a sweep need, sent once; the tasks of a worker share the memory of their blocks with it.

    A task has one leaf, as a rule. Its blocks would otherwise be in new memory, which the system fills with zeros.
    """

    def __init__(self, table: Table, work: Any, *others: Any) -> None:
        self.table, self.work, self.others = table, work, others
        self.memory = BlockMemory()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was sent: memory stays where it is."""
        return Payload, (self.table, self.work, *self.others)


def map_leaves(payload: Payload, spans: Sequence[tuple[int, int]]) -> State:
    """The sealed sum of neighbouring leaves, added up as in the tree."""
    [rows] = payload.others
    reduction: AnyReduction = payload.work
    memory = StateMemory(reduction)
    tree: PairingTree[State] = PairingTree(len(spans), memory.absorb)

    def done(leaf: int, state: State) -> None:
        tree.add(leaf, memory.sealed(state))

    map_spans(payload.table, reduction, iter(enumerate(spans)), rows, done, memory.empty, payload.memory)
    return tree.root()


def combine_states(payload: Payload, places: Sequence[tuple[int, int]], *states: State) -> State:
    """The sum of sealed neighbouring nodes, added up as in the tree.

    Parameters
    ----------
    places : first leaf, and that after the last one, of each node, counted from the first leaf of all.
    """
    tree: PairingTree[State] = PairingTree(places[-1][1], payload.work.combine)
    for (first, stop), state in zip(places, states, strict=True):
        level = (stop - first - 1).bit_length()
        tree.add(first >> level, state, level)
    return tree.root()


def write_leaf(payload: Payload, spans: Sequence[tuple[int, int]]) -> Written:
    """Write the values of one leaf."""
    sink, rows = payload.others
    [span] = spans
    with ChunkWriter(sink) as writer:
        return write_span(payload.table, payload.work, writer, span, rows).wait()
