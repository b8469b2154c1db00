"""Measure the rates of this machine, or of the workers of a cluster, in about a minute."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from streamkernel.engine import Executor, ThreadExecutor, available_cpus, branch_leaves, sum_tasks, summed_states
from streamkernel.engine.layout import Layout
from streamkernel.outputs import TemporaryFolder
from streamkernel.reductions import Moments
from streamkernel.table import Scaler, Table, open_table
from streamkernel.table.ingest.ingest import ingest
from streamkernel.timing import _measure as measure
from streamkernel.timing.rates import VERSION, KernelRate, Rates, SumRate
from streamkernel.type_aliases import Untyped

Notify = Callable[[str], None]

_ROWS, _FEATURES, _CHUNK = 400_000, 20, 20_000  # of the table that is read if none is given: 35 MB
_LEAVES = 200  # of the sweep that measures tasks
_SENT = 4_000_000  # numbers that a worker sends to another
_PROBE, _READ = 1.0, 2.0  # seconds
_MOST_WORKERS = 64  # that are measured at once
_STORAGE_BOUND = 0.75  # of the rate that so many readers would have if the storage had no limit
_IDLE = 0.75  # share of the cores that reading may take, for the storage to be what limits it


class _Place(Protocol):
    """The place where measurements run."""

    def one(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a call."""

    def all(self, calls: list[Callable[[], Any]]) -> list[Any]:
        """The results of calls at the same time."""

    @property
    def size(self) -> int:
        """Number of calls that run at the same time."""


class _Here:
    """Threads of this process."""

    def __init__(self, threads: int) -> None:
        self.size = threads

    def one(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def all(self, calls: list[Callable[[], Any]]) -> list[Any]:
        with ThreadPoolExecutor(len(calls)) as pool:
            return [each.result() for each in [pool.submit(call) for call in calls]]


class _Workers:
    """Workers of a client, one task on each."""

    def __init__(self, client: Untyped) -> None:
        self._client = client
        self.addresses = list(client.nthreads())[:_MOST_WORKERS]
        self.size = len(self.addresses)

    def submit(self, worker: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """A future of a call on a worker."""
        address, key = self.addresses[worker % self.size], f"calibrate/{uuid.uuid4().hex}"
        return self._client.submit(function, *arguments, key=key, pure=False, workers=[address])

    def one(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.submit(0, function, *arguments).result()

    def all(self, calls: list[Callable[[], Any]]) -> list[Any]:
        return list(self._client.gather([self.submit(worker, call) for worker, call in enumerate(calls)]))


def calibrate(executor: Executor | None = None, store: str | None = None, tell: Notify | None = None) -> Rates:
    """Measure rates where the sweeps of an executor run.

    Parameters
    ----------
    executor : threads of this process by default; a cluster's measures cores, storage and network of its workers.
    store : path or URL of a table that is read to measure the storage, the same for all workers; by default a table
        of 35 MB in the temporary folder of the first worker, or of this machine.
    tell : function that gets a line about each part.
    """
    executor = executor or ThreadExecutor()
    table = None if store is None else _scaled(open_table(store))  # errors of the place come first
    say = tell or (lambda text: None)
    client = getattr(executor, "client", None)
    place: _Here | _Workers = _Here(executor.threads_per_worker) if client is None else _Workers(client)
    say("kernel blocks and sums of a core")
    core = place.one(measure.core_rates)
    say("cores together")
    alone = place.one(measure.probe, _PROBE)
    # More workers than cores would slow each other down twice: here, and by the number of cores in a plan.
    probes = place.size if executor.remote else min(place.size, core["cores"])
    together = place.all([partial(measure.probe, _PROBE)] * probes)
    say("reading")
    read = _reading(place, table, core["cores"])
    say("tasks")
    tasks = task_rates(executor)
    return Rates(
        version=VERSION,
        measured=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {place.one(measure.host)}",
        cores=core["cores"],
        busy=max(1.0, alone / measure.middle(together)),
        kernels=tuple(KernelRate.from_config(each) for each in core["kernels"]),
        sums=tuple(SumRate.from_config(each) for each in core["sums"]),
        single_sums=tuple(SumRate.from_config(each) for each in core["single_sums"]),
        memory_bytes=core["memory_bytes"],
        network_bytes=core["memory_bytes"] if client is None else network_rate(client),
        algebra_flops=core["algebra_flops"],
        **read,
        **tasks,
    )


def storage_rates(executor: Executor, store: str | None = None) -> dict[str, Any]:
    """Rates of reading alone, by name; parameters are those of `calibrate`."""
    client = getattr(executor, "client", None)
    place: _Here | _Workers = _Here(executor.threads_per_worker) if client is None else _Workers(client)
    return _reading(place, None if store is None else _scaled(open_table(store)), available_cpus())


def _table(folder: Path) -> Table:
    """A table of our own, written as `ingest` writes one."""
    rng = np.random.default_rng(3)
    np.save(folder / "rows.npy", rng.standard_normal((_ROWS, _FEATURES + 1)).astype(np.float32))
    ingest(folder / "rows.npy", folder / "rows.zarr", target=_FEATURES, chunk_rows=_CHUNK)
    return _scaled(open_table(folder / "rows.zarr"))


def _scaled(table: Table) -> Table:
    """Reading includes the scaling of columns, as in a sweep."""
    p = table.n_features
    return table.with_scaler(Scaler(np.zeros(p), np.ones(p)))


def _read_own(seconds: float) -> tuple[float, tuple[int, float, float]]:
    with TemporaryFolder() as folder:
        table = _table(folder)
        return measure.check_time(table), measure.read_rate(table, seconds)


def _reading(place: _Here | _Workers, table: Table | None, cores: int) -> dict[str, Any]:
    """Rates of reading: one reader alone, the part of it that needs a core, and many readers at once."""
    if table is None:
        check, (count, wall, cpu) = place.one(_read_own, _READ)
        rates = {"check_seconds": check, "read_bytes": count / wall, "decode_bytes": count / max(cpu, 1e-9)}
        return {**rates, "storage_bytes": None}
    check = measure.check_time(table)  # by the driver
    count, wall, cpu = place.one(measure.read_rate, table, _READ)
    read, decode = count / wall, count / max(cpu, 1e-9)
    # Threads that wait do not need a core each.
    readers = 8 * place.size if isinstance(place, _Here) else place.size
    found = place.all([partial(measure.read_rate, table, _READ, 7 * reader) for reader in range(readers)])
    total = sum(count / wall for count, wall, _ in found)
    busy = total / decode / (cores if isinstance(place, _Here) else place.size)
    limited = total < _STORAGE_BOUND * readers * read and busy < _IDLE
    rates = {"check_seconds": check, "read_bytes": read, "decode_bytes": decode}
    return {**rates, "storage_bytes": total if limited else None}


class _LongLeaves(Moments):
    """Moments whose leaves are said to take a second of a core: each is a task of its own."""

    def flops_per_row(self) -> float:
        return 2e10


def _sweep_of(executor: Executor, leaves: int) -> float:
    """Seconds of a sweep of so many leaves without work."""
    table = open_table(np.zeros((leaves, 1)))
    layout = Layout([(leaf, leaf + 1) for leaf in range(leaves)], 1)
    began = time.perf_counter()
    executor.reduce(_LongLeaves(1, 0), table, layout, lambda rows: None)
    return time.perf_counter() - began


def task_rates(executor: Executor) -> dict[str, float]:
    """Seconds of a sweep of one leaf on threads and on the workers, and of each further task."""
    threads = one = min(_sweep_of(ThreadExecutor(1), 1) for _ in range(3))
    task = 0.0
    if executor.n_workers:
        one = min(_sweep_of(executor, 1) for _ in range(3))
        many = min(_sweep_of(executor, _LEAVES) for _ in range(3))
        size = branch_leaves(_LEAVES, 0, executor.n_workers * executor.threads_per_worker, 1.0)
        task = max(many - one, 0.0) / (_LEAVES + sum_tasks({1: _LEAVES}, size, summed_states(0)) - 1)
    return {"thread_sweep_seconds": threads, "sweep_seconds": one, "task_seconds": task}


def network_rate(client: Untyped) -> float:
    """Bytes a second from one worker of a client to another; to the driver if there is only one."""
    place, seconds = _Workers(client), []
    for _ in range(3):
        array = place.submit(0, measure.filled, _SENT)
        place.submit(0, measure.size_of, array).result()
        began = time.perf_counter()
        if place.size > 1:
            place.submit(1, measure.size_of, array).result()
        else:
            array.result()
        seconds.append(time.perf_counter() - began)
    return 8 * _SENT / min(seconds)
