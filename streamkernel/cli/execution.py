"""The place where a command runs: threads, a local cluster, or a scheduler's address, within a memory limit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from streamkernel.byte_counts import parse_bytes
from streamkernel.cli.options import CORES_OF_THREADS, Resources
from streamkernel.engine import (
    LOCAL_WORKER_BYTES,
    Executor,
    Machine,
    MemoryLimits,
    Plan,
    ThreadExecutor,
    available_cpus,
    limits_here,
    machine_of,
)
from streamkernel.engine.compiling import Notify, compile_here
from streamkernel.errors import ParameterError
from streamkernel.type_aliases import Untyped


@dataclass(frozen=True)
class ExecutionTarget:
    """A scheduler's name or address, and the number of workers (0: threads of this process).

    Attributes
    ----------
    memory : bytes that `--memory` allows; None where it was not given.
    security : certificates for a ``tls://`` address, None where Dask's own configuration names them.
    insecure : whether an address on another machine may be unencrypted.
    """

    scheduler: str
    workers: int
    memory: int | None = None
    security: Untyped = None
    insecure: bool = False

    def machine(self, driver_bytes: int | None = None) -> Machine:
        """The machine for plans that are made before anything is started: that of the run, but for remote workers.

        Parameters
        ----------
        driver_bytes : bytes resident in this process, if it is to run the plan on its threads.
        """
        if self.scheduler == "threads":
            return machine_of(ThreadExecutor(), driver_bytes)
        return Machine(self.workers, 1) if self.remote else Machine(self.workers, 1, worker_base=LOCAL_WORKER_BYTES)

    @property
    def remote(self) -> bool:
        """Whether the workers belong to a scheduler that this process did not start."""
        return self.scheduler not in ("local", "threads")

    def limits(self) -> MemoryLimits:
        """The limits that are known before anything is started; those of remote workers are not."""
        return limits_here(self.memory, workers=self.workers > 0, remote=self.remote)

    @contextlib.contextmanager
    def executor(self, notify: Notify, worker_bytes: int | None = None) -> Iterator[Executor]:
        """Start the executor, and end it on leaving; `notify` gets a line about each step that takes long."""
        if self.scheduler == "threads":
            compile_here(notify)
            yield ThreadExecutor()
        elif self.scheduler == "local":
            compile_here(notify)
            with _engine("cluster").local_cluster(self.workers, memory_limit=worker_bytes, tell=notify) as executor:
                yield executor
        else:
            cluster = _engine("cluster")
            with cluster.connect(self.scheduler, self.security, insecure=self.insecure, tell=notify) as executor:
                yield executor


def default_place(workers: int | None) -> str:
    """Where the work runs if `--scheduler` does not say it.

    Threads start at once and hold the libraries once. But their Python code takes turns: with 100 to 300 functions a
    task runs it for 15 to 20 % of its time, so that six threads have nothing left to gain. Processes have no such
    limit.
    """
    return "threads" if workers is None and available_cpus() <= CORES_OF_THREADS else "local"


def execution_target(resources: Resources) -> ExecutionTarget:
    """Check `--scheduler`, its TLS files, `--workers` and `--memory` before any work."""
    options, workers, memory = resources.scheduler, resources.workers, parse_bytes(resources.memory)
    scheduler = default_place(workers) if options.address is None else options.address
    if scheduler == "threads":
        if workers is not None:
            raise ParameterError("--workers is for the local cluster; with --scheduler threads leave it out")
        return ExecutionTarget(scheduler, 0, memory)
    if scheduler == "local":
        return ExecutionTarget(scheduler, workers or available_cpus(), memory)
    if not is_address(scheduler):
        raise ParameterError(
            f"--scheduler must be local, threads or an address such as tls://host:8786, not {scheduler!r}"
        )
    if workers is not None:
        raise ParameterError("--workers is for the local cluster; a remote scheduler has its own workers")
    security = _engine("security")
    security.check_encrypted(scheduler, insecure=options.insecure)
    files = security.tls_security(options.tls_ca, options.tls_cert, options.tls_key)
    return ExecutionTarget(scheduler, 1, memory, files, options.insecure)


def place_within(
    place: ExecutionTarget,
    resources: Resources,
    limits: MemoryLimits,
    plans_on: Callable[[Machine], Iterable[Plan]],
    driver_bytes: int | None = None,
) -> ExecutionTarget:
    """The place with a local cluster of fewer workers, where no number was given and more would exceed the limits.

    Parameters
    ----------
    plans_on : function for the plans of all fits on a machine.
    driver_bytes : that of `ExecutionTarget.machine`.
    """
    if place.scheduler == "local" and resources.workers is None:
        while place.workers > 1 and any(limits.exceeded(plan) for plan in plans_on(place.machine(driver_bytes))):
            place = replace(place, workers=place.workers - 1)
    return place


def worker_share(place: ExecutionTarget, limits: MemoryLimits, plan: Plan) -> int | None:
    """Memory above which Dask stops a local worker: an equal share of the limit less the driver's part."""
    if place.scheduler != "local" or limits.total is None:
        return None
    return max(plan.worker_bytes, (limits.total - plan.driver_bytes) // place.workers)


def is_address(scheduler: str) -> bool:
    """Whether this is the address of a scheduler, by the protocol it begins with."""
    return scheduler.partition("://")[0] in ("tcp", "tls", "ws", "wss", "ucx")


def _engine(module: str) -> Any:
    """A module of the engine that loads distributed, which takes longer than all the rest: threads do without it."""
    return import_module(f"streamkernel.engine.{module}")
