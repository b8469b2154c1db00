"""The state of a cluster: what each task and each worker is doing.

distributed documents no way to ask for it. Its errors of lost connections and workers are here too: the documentation
does not name their modules.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from distributed import Client, LocalCluster, Nanny, Scheduler, Status, Worker

from streamkernel.dependencies import missing_part
from streamkernel.type_aliases import Untyped

try:
    from distributed.client import AllExit, ClosedClientError, FutureCancelledError, FuturesCancelledError
    from distributed.comm.core import CommClosedError
    from distributed.scheduler import NoValidWorkerError, NoWorkerError
    from distributed.worker_state_machine import WorkerState
except ImportError as error:
    raise missing_part("distributed", str(error)) from error

for _owner, _name in ((Scheduler, "get_task_status"), (WorkerState, "executing_count"), (Nanny, "pid")):
    if not hasattr(_owner, _name):
        raise missing_part("distributed", f"{_owner.__name__}.{_name}")

if TYPE_CHECKING:
    from distributed import Future as _Future

    Future = _Future[Any]  # a class without parameters before distributed 2025.12

T = TypeVar("T")

__all__ = [
    "AllExit",
    "ClosedClientError",
    "CommClosedError",
    "FutureCancelledError",
    "FuturesCancelledError",
    "NoValidWorkerError",
    "NoWorkerError",
    "Pause",
    "a_worker_failed",
    "audible_workers",
    "await_ready",
    "busy_workers",
    "executing",
    "is_closing",
    "kill_workers",
    "memory_at_end",
    "paused_workers",
    "task_state",
    "worker_threads",
]

_CLOSING = frozenset({Status.closing_gracefully, Status.closing, Status.closed, Status.failed})


def task_state(client: Client, key: str) -> str | None:
    """State of a task on the scheduler; None if the scheduler knows no such task.

    A `Future` made from the key cannot tell: for an unknown key it waits forever.
    """
    scheduler: Untyped = client.scheduler
    state: str | None = client.sync(scheduler.get_task_status, keys=[key])[key]
    return state


def _pauses() -> Iterator[float]:
    """Seconds between looks at something that is awaited: short ones first."""
    pause = 0.001
    while True:
        yield pause
        pause = min(2 * pause, 0.02)


def await_ready(client: Client, ready: Callable[[], bool], seconds: float = float("inf")) -> bool:
    """Wait in short intervals, because a client that another thread closes may not wake this one.

    Closing does not cancel a future that is submitted or awaited at that moment, and its event loop is gone.

    Returns
    -------
    bool
        Whether it is ready; False after so many seconds.
    """
    until = time.monotonic() + seconds
    for pause in _pauses():
        if ready():
            return True
        if client.status == "closed" and not ready():
            raise ClosedClientError("the client was closed")
        if time.monotonic() >= until:
            return False
        time.sleep(pause)
    raise AssertionError


def _answer(client: Client, question: Callable[[], T]) -> T:
    """The answer of the scheduler, asked in a thread: if another one closes the client, it may never come.

    Raises
    ------
    ClosedClientError
    """
    answers: list[T] = []
    errors: list[Exception] = []

    def ask() -> None:
        try:
            answers.append(question())
        except Exception as error:
            errors.append(error)

    asking = threading.Thread(target=ask, name="streamkernel-question", daemon=True)
    asking.start()
    await_ready(client, lambda: not asking.is_alive())
    if errors:
        if isinstance(errors[0], AttributeError) and (client.status == "closed" or client.scheduler is None):
            raise ClosedClientError("the client was closed") from errors[0]
        raise errors[0]
    return answers[0]


def worker_threads(client: Client) -> dict[str, int]:
    """Number of threads of each worker, by its address."""
    return dict(_answer(client, client.nthreads))


def busy_workers(client: Client) -> set[str]:
    """Addresses of the workers that have tasks."""
    return {worker for worker, keys in _answer(client, client.processing).items() if keys}


def audible_workers(client: Client) -> list[str]:
    """Addresses of the workers of which the scheduler has heard lately; all if these are none.

    A worker that is stopped, or whose machine is, keeps its connections for minutes.
    """
    workers = _answer(client, lambda: client.scheduler_info(n_workers=-1))["workers"]
    seen = {address: float(worker["last_seen"]) for address, worker in workers.items()}
    # Workers report every half second, and of n more than 200 every 1 + n / 200 seconds.
    silent = 10.0 + 2.0 * (1.0 + len(seen) / 200.0)
    return [address for address, last in seen.items() if last > max(seen.values()) - silent]


@dataclass(frozen=True)
class Pause:
    """A worker that begins no task, because of its memory.

    Attributes
    ----------
    worker : its address.
    held, limit : bytes that its process holds, and its memory limit, 0 for none.
    """

    worker: str
    held: int
    limit: int


def paused_workers(client: Client) -> list[Pause] | None:
    """The workers, if all are paused; None if one runs, or if there is none."""
    workers = _answer(client, lambda: client.scheduler_info(n_workers=-1))["workers"]
    if not workers or any(worker["status"] != Status.paused.name for worker in workers.values()):
        return None
    return [
        Pause(address, int(worker["metrics"]["memory"]), int(worker["memory_limit"] or 0))
        for address, worker in workers.items()
    ]


def executing(client: Client) -> dict[str, int]:
    """Number of tasks that run on each worker, also cancelled ones, of which the scheduler knows nothing more."""
    found: dict[str, int] = client.run(_executing, on_error="ignore")
    return found


def _executing(dask_worker: Untyped) -> int:
    return int(dask_worker.state.executing_count)


def is_closing(worker: Worker) -> bool:
    """Whether a worker is about to end: after SIGTERM, at the end of its lifetime, or without its scheduler."""
    return worker.status in _CLOSING


def memory_at_end(client: Client, worker: str) -> int | None:
    """Bytes that a worker held when its nanny ended it for its memory; None where this did not happen."""
    held = [event["rss"] for _, event in client.get_events("worker-restart-memory") if event["worker"] == worker]
    return int(held[-1]) if held else None


def a_worker_failed(cluster: LocalCluster) -> bool:
    """Whether a worker process ended before it was ready, which the thread that starts them only logs."""
    return any(nanny.status == Status.failed for nanny in cluster.workers.values())


def kill_workers(cluster: LocalCluster) -> None:
    """End the worker processes at once, in the middle of their tasks."""
    for nanny in list(cluster.workers.values()):
        with contextlib.suppress(ProcessLookupError, TypeError):  # no process yet, or no longer
            os.kill(nanny.pid, signal.SIGKILL)
