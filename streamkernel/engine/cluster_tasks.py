"""What workers are given: functions of a payload that was sent once a sweep."""

from __future__ import annotations

from typing import Any

from streamkernel.engine.chunk_writer import ChunkWriter
from streamkernel.engine.tasks import Written, map_span, write_span
from streamkernel.reductions import Reduction, RowMap, State
from streamkernel.store import RowSink
from streamkernel.table import Table

__all__ = ["combine_states", "hold", "map_leaf", "write_leaf"]


def hold(*payload: Any) -> tuple[Any, ...]:
    return payload


def map_leaf(payload: tuple[Table, Reduction[Any], int], span: tuple[int, int]) -> State:
    table, reduction, rows = payload
    return map_span(table, reduction, span, rows)


def combine_states(payload: tuple[Table, Reduction[Any], int], left: State, right: State) -> State:
    return payload[1].combine(left, right)


def write_leaf(payload: tuple[Table, RowMap, RowSink, int], span: tuple[int, int]) -> Written:
    table, values, sink, rows = payload
    with ChunkWriter(sink) as writer:
        return write_span(table, values, writer, span, rows).wait()
