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
from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions import RowMap, State
from streamkernel.reductions.contract import AnyReduction
from streamkernel.store import RowSink
from streamkernel.table import Table


def warm_up() -> None:
    """Load the package and its compiled loops, so that the first sweep does not pay for it."""
    limit_heaps()
    with single_threaded_blas():
        LOOPS.compile()


def hold(*payload: Any) -> tuple[Any, ...]:
    return payload


def map_leaves(payload: tuple[Table, AnyReduction, int], spans: Sequence[tuple[int, int]]) -> State:
    """The sum of neighbouring leaves, added up as in the tree."""
    table, reduction, rows = payload
    memory = StateMemory(reduction)
    tree: PairingTree[State] = PairingTree(len(spans), memory.absorb)
    map_spans(table, reduction, iter(enumerate(spans)), rows, tree.add, memory.empty)
    return tree.root()


def combine_states(
    payload: tuple[Table, AnyReduction, int], places: Sequence[tuple[int, int]], *states: State
) -> State:
    """The sum of neighbouring nodes, added up as in the tree.

    Parameters
    ----------
    places : first leaf, and that after the last one, of each node, counted from the first leaf of all.
    """
    tree: PairingTree[State] = PairingTree(places[-1][1], payload[1].combine)
    for (first, stop), state in zip(places, states, strict=True):
        level = (stop - first - 1).bit_length()
        tree.add(first >> level, state, level)
    return tree.root()


def write_leaf(payload: tuple[Table, RowMap, RowSink, int], spans: Sequence[tuple[int, int]]) -> Written:
    """Write the values of one leaf."""
    table, values, sink, rows = payload
    [span] = spans
    with ChunkWriter(sink) as writer:
        return write_span(table, values, writer, span, rows).wait()
