"""The place where the tasks of a sweep run: threads of this process, or the workers of a Dask client."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from streamkernel.engine._tasks import Advance, Receiver
from streamkernel.engine.layout import Layout
from streamkernel.engine.threads import ThreadExecutor
from streamkernel.reductions import RowMap, State
from streamkernel.reductions.contract import AnyReduction
from streamkernel.store import RowSink
from streamkernel.table import Table
from streamkernel.type_aliases import Untyped


class Executor(Protocol):
    """The place where tasks run. Every executor gives the same bits."""

    name: str
    remote: bool
    n_workers: int  # processes; 0 for threads of this one
    threads_per_worker: int

    def reduce(self, reduction: AnyReduction, table: Table, layout: Layout, advance: Advance) -> State: ...

    def write(
        self, rows: RowMap, table: Table, sink: RowSink, layout: Layout, advance: Advance, written: Receiver
    ) -> None: ...

    def peak_bytes(self) -> int: ...

    def worker_limit(self) -> int | None:
        """The smallest memory limit of a worker in bytes; None without such a limit."""


def executor_of(client: Untyped) -> Executor:
    """Executor on the workers of a Dask client; without one, on threads of this process.

    Raises
    ------
    ParameterError, ClusterError
        It is no client, or none on which sweeps can run; see `checked_client`.
    """
    if client is None:
        return ThreadExecutor()
    # distributed takes longer to import than the rest of the package: only a process with a client loads it.
    module = import_module("streamkernel.engine.cluster")
    executor: Executor = module.ClusterExecutor(module.checked_client(client))
    return executor
