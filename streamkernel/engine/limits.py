"""The memory limits of the processes, and the check of a plan against them.

If the user gives no limit, the machines' own limits apply. A worker has the limit of its Dask process and the limits
set on it (a cgroup, a SLURM job, ulimit). This process has the smallest of this machine's memory and the limits set on
it. If the workers run on this machine too, that limit is for all processes together; only ulimit is for each process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from streamkernel.byte_counts import format_bytes
from streamkernel.engine._allowed_memory import MACHINE, Allowed, allowed_memory, allowed_to_each
from streamkernel.engine.executor import Executor
from streamkernel.engine.plan import BASE_BYTES, COMPILING_BYTES, LOCAL_WORKER_BYTES, WORKER_BYTES, Machine, Plan
from streamkernel.errors import ResourceLimitError
from streamkernel.wording import option


@dataclass(frozen=True)
class MemoryLimits:
    """Bytes; None for no limit.

    Parameters
    ----------
    total : limit of all processes together.
    driver : limit of this process.
    worker : limit of each worker.
    by : origin of each limit, by its name, unless it is the machine or the user.
    """

    total: int | None = None
    driver: int | None = None
    worker: int | None = None
    by: Mapping[str, str] = field(default_factory=dict, compare=False)

    def exceeded(self, plan: Plan) -> str | None:
        """Text of the limit that the plan exceeds, with both numbers; None where it exceeds none."""
        parts = f"driver {format_bytes(plan.driver_bytes)}"
        if plan.machine.workers:
            parts += f" + {plan.machine.workers} x worker {format_bytes(plan.worker_bytes)}"
        for projected, name, whose, of in (
            (plan.memory_bytes, "total", "", f": {parts}"),
            (plan.worker_bytes, "worker", " of each worker", ""),
            (plan.driver_bytes, "driver", " of the driver", ""),
        ):
            allowed = getattr(self, name)
            if allowed is not None and projected > allowed:
                who = f", of {self.by[name]}" if name in self.by else ""
                return (
                    f"projected memory{whose} ({format_bytes(projected)}{of}) "
                    f"exceeds allowed memory ({format_bytes(allowed)}{who})"
                )
        return None


def total_memory() -> int:
    """Bytes of memory that processes here may use: the machine's, or a smaller limit set on them."""
    return allowed_memory().bytes


def limits_here(limit: int | None, *, workers: bool, remote: bool = False, worker: int | None = None) -> MemoryLimits:
    """The limits of a run whose driver is on this machine, with its workers unless they are `remote`.

    Parameters
    ----------
    limit : bytes of all processes together; None for the machine's limits.
    workers : whether there are workers.
    worker : memory limit of each worker in bytes, where it is known.
    """
    if limit:
        return MemoryLimits(total=limit, worker=worker)
    all_here, each = Allowed(total_memory(), allowed_memory().by), allowed_to_each()
    least = all_here if each is None else min(all_here, each)
    if remote:
        return MemoryLimits(driver=least.bytes, worker=worker, by=_sources(driver=least))
    if each is None or not workers:
        return MemoryLimits(total=least.bytes, worker=worker, by=_sources(total=least))
    of_worker = each if worker is None else min(each, Allowed(worker, MACHINE))
    by = _sources(total=all_here, driver=each, worker=of_worker)
    return MemoryLimits(all_here.bytes, each.bytes, of_worker.bytes, by)


def _sources(**limits: Allowed) -> dict[str, str]:
    return {name: limit.by for name, limit in limits.items() if limit.by != MACHINE}


def machine_of(executor: Executor, driver_bytes: int | None = None) -> Machine:
    """The machine of an executor.

    Parameters
    ----------
    driver_bytes : bytes resident in the driver before the run, where they are known.
    """
    return Machine(
        executor.n_workers,
        executor.threads_per_worker,
        max(BASE_BYTES, (driver_bytes or 0) + COMPILING_BYTES),
        WORKER_BYTES if executor.remote else LOCAL_WORKER_BYTES,
    )


def memory_limits(executor: Executor, limit: int | None) -> MemoryLimits:
    """The limits of a run.

    Parameters
    ----------
    limit : bytes of all processes together, or None for this machine's limits. The workers' own limits apply in any
        case: beyond them Dask ends a worker.
    """
    return limits_here(limit, workers=executor.n_workers > 0, remote=executor.remote, worker=executor.worker_limit())


def check_memory(plan: Plan, limits: MemoryLimits, fits: Callable[[int], Plan], n: int) -> None:
    """Refuse a plan that exceeds a limit, with both numbers and the remedy.

    Parameters
    ----------
    fits : function that plans for another basis size.
    n : basis size of `plan`.

    Raises
    ------
    ResourceLimitError
    """
    exceeded = limits.exceeded(plan)
    if exceeded is None:
        return
    low, high = 0, n
    while high - low > max(1, n // 200):
        middle = (low + high) // 2
        if middle and limits.exceeded(fits(middle)) is None:
            low = middle
        else:
            high = middle
    nothing = "no basis fits: use fewer workers or threads, smaller chunks, or machines with more memory"
    remedy = f"{option('n_components', low)} would fit" if low else nothing
    hint = max(plan.steps, key=lambda step: step.held_bytes).remedy
    raise ResourceLimitError(f"{exceeded}; {remedy}" + (f", or use {hint}" if hint else ""))
