"""The task that ended its worker, among all tasks on that worker.

Dask counts the death of a worker against every task that was assigned to it, running or not; which of them it gives up
first is random. So the suspects run again, each alone, one chunk at a time, until a worker dies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from distributed import Client, Future, KilledWorker

from streamkernel.byte_counts import format_bytes
from streamkernel.engine.cluster.cluster_state import executing, memory_at_end
from streamkernel.engine.layout import aligned_spans
from streamkernel.errors import ClusterError, ResourceLimitError, StreamKernelError
from streamkernel.reductions import Reduction, RowMap
from streamkernel.reductions.contract import AnyReduction
from streamkernel.table import Table
from streamkernel.wording import call, option

_PATIENCE = 20.0  # seconds to wait for an idle worker
_LOOK = 0.05


def blame(
    client: Client,
    error: KilledWorker,
    suspects: Sequence[tuple[int, int]],
    work: tuple[AnyReduction | RowMap, Table],
    attempt: Callable[[tuple[int, int], str], Future[Any]],
) -> StreamKernelError:
    """The error for workers that died under tasks of a sweep.

    Parameters
    ----------
    suspects : spans of the possible tasks, the most probable first; none of them still runs or is needed.
    work : reduction or row map, and its table.
    attempt : function that submits the task of a span to the worker at an address only.
    """
    found = _lethal(client, attempt, (piece for span in suspects for piece in _pieces(*work, span)))
    start, stop = found or suspects[0]
    where = work[1].features.where
    what = f"the task of rows {start}:{stop}, {' to '.join(dict.fromkeys([where(start), where(stop - 1)]))}"
    certain = found or len(suspects) == 1
    return killed_worker(client, error, what if certain else f"one of {len(suspects)} tasks, perhaps {what}")


def _pieces(work: AnyReduction | RowMap, table: Table, span: tuple[int, int]) -> list[tuple[int, int]]:
    # A reduction can run each chunk as its own task; a row map cannot, because output chunks differ from input chunks.
    if not isinstance(work, Reduction):
        return [span]
    return aligned_spans(table.slice(*span).spans(1), work.row_multiple)


def _lethal(
    client: Client, attempt: Callable[[tuple[int, int], str], Future[Any]], pieces: Iterable[tuple[int, int]]
) -> tuple[int, int] | None:
    """The first piece whose task ends the worker on which it runs alone; None where none does, or no worker is left."""
    for piece in pieces:
        worker = _idle_worker(client)
        if worker is None:
            return None
        future = attempt(piece, worker)
        while not future.done():
            if worker not in client.nthreads():
                return piece
            time.sleep(_LOOK)
    return None


def _idle_worker(client: Client) -> str | None:
    # A cancelled task runs to its end, and may be the one that ends the worker.
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        for worker, tasks in executing(client).items():
            if tasks == 0:
                return worker
        time.sleep(_LOOK)
    return None


def killed_worker(client: Client, error: KilledWorker, what: str) -> ClusterError | ResourceLimitError:
    """The error for a killed worker, with the remedy.

    Parameters
    ----------
    what : words for the task: its rows, and their place.
    """
    times = error.allowed_failures + 1
    held = memory_at_end(client, str(error.last_worker.address))
    if held is not None:
        limit = format_bytes(int(error.last_worker.memory_limit))
        return ResourceLimitError(
            f"{what}: its worker was ended {times} times, the last time as it held {format_bytes(held)} of the {limit} "
            f"that it may; use a smaller {option('n_components')}, tables of smaller chunks "
            f"({call('ingest', 'chunk_rows')}), workers of fewer threads, or of more memory"
        )
    return ClusterError(
        f"{what}: its worker died {times} times; it may need more memory than a worker has, or what it reads crashes "
        "the reader: look at the workers' logs, and at that chunk"
    )
