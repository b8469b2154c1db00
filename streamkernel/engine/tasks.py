"""What one task does, in whatever process: pure functions of (table, reduction, span)."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions import Reduction, RowMap, State
from streamkernel.store import RowSink
from streamkernel.table import Table

__all__ = ["map_span", "write_span"]


def map_span(table: Table, reduction: Reduction[Any], span: tuple[int, int], block_rows: int) -> State:
    """State of one span: its blocks, one after another in the order of their rows."""
    state: State | None = None
    with single_threaded_blas():
        for block in table.blocks(*span, block_rows):
            state = reduction.map_block(block) if state is None else reduction.fold(state, block)
    assert state is not None
    return state


def write_span(table: Table, rows: RowMap, sink: RowSink, span: tuple[int, int], block_rows: int) -> dict[str, str]:
    """Compute and write the values of one span; returns the digests of the chunks written."""
    parts: dict[str, list[Any]] = {name: [] for name in rows.columns}
    with single_threaded_blas():
        for block in table.blocks(*span, block_rows):
            for name, values in rows.map_block(block).items():
                parts[name].append(values)
    digests: dict[str, str] = {}
    for name, pieces in parts.items():
        digests |= sink.write(name, span[0] - table.start, np.concatenate(pieces))
    return digests
