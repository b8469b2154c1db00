"""The tasks of workers: functions of a payload that is sent once per sweep, and the warm-up."""

from __future__ import annotations

from typing import Any

from streamkernel.engine._chunk_writer import ChunkWriter
from streamkernel.engine._tasks import Written, map_span, write_span
from streamkernel.engine.peak_memory import limit_arenas
from streamkernel.kernels import compile_all
from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions import RowMap, State
from streamkernel.reductions.contract import AnyReduction
from streamkernel.store import RowSink
from streamkernel.table import Table


def warm_up() -> None:
    """Load the package and its compiled loops, so that the first sweep does not pay for it."""
    limit_arenas()
    with single_threaded_blas():
        compile_all()


def hold(*payload: Any) -> tuple[Any, ...]:
    return payload


def map_leaf(payload: tuple[Table, AnyReduction, int], span: tuple[int, int]) -> State:
    table, reduction, rows = payload
    return map_span(table, reduction, span, rows)


def combine_states(payload: tuple[Table, AnyReduction, int], left: State, right: State) -> State:
    return payload[1].combine(left, right)


def write_leaf(payload: tuple[Table, RowMap, RowSink, int], span: tuple[int, int]) -> Written:
    table, values, sink, rows = payload
    with ChunkWriter(sink) as writer:
        return write_span(table, values, writer, span, rows).wait()
