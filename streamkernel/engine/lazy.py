"""Values per row as a lazy Dask array."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions import RowMap
from streamkernel.table import Table
from streamkernel.type_aliases import AnyArray, ArrayOrDask


def _rows(start: int, stop: int, table: Table, work: RowMap, name: str, block_rows: int) -> AnyArray:
    with single_threaded_blas():
        return np.concatenate([work.map_block(block)[name] for block in table.blocks(start, stop, block_rows)])


def lazy_rows(work: RowMap, table: Table, name: str, block_rows: int) -> ArrayOrDask:
    """A Dask array of one of the row map's outputs, in chunks of the table's spans; nothing is read yet.

    Parameters
    ----------
    work : row map; sent once, as one node of the graph.
    table : rows.
    name : name of the output.
    block_rows : rows of a span, rounded to whole chunks.
    """
    # Loaded here: dask.array takes long to import, and rows in memory do without it.
    da, delayed = import_module("dask.array"), import_module("dask.delayed").delayed
    width, dtype = work.columns[name]
    # Table and row map are one delayed object each, so that the basis is in the graph once, not in every task.
    held_table, held_work = delayed(table, pure=False), delayed(work, pure=False)
    task = delayed(_rows, pure=False)
    spans = table.spans(block_rows)
    parts = []
    for start, stop in spans:
        shape = (stop - start,) if width is None else (stop - start, width)
        values = task(start, stop, held_table, held_work, name, block_rows)
        parts.append(da.from_delayed(values, shape=shape, dtype=dtype))
    return da.concatenate(parts, axis=0)
