"""The preparation of workers before their first task: warm-up, and their memory limits."""

from __future__ import annotations

import contextlib
import socket
import uuid
from collections import Counter

from distributed import Client, wait

from streamkernel.engine._allowed_memory import MACHINE, Allowed, allowed_memory, allowed_to_each
from streamkernel.engine.cluster._worker_tasks import warm_up
from streamkernel.engine.compiling import COMPILING, Notify, notified_if_slow


def silent(text: str) -> None:
    """A `Notify` that ignores the text."""


def warm_up_workers(client: Client, notify: Notify = silent) -> None:
    """Let every worker load the package and its loops, or compile them; wait without a time-out.

    The warm-up runs as tasks: a broadcast would block a worker's heartbeat, and a compiler takes minutes, after which
    the scheduler would drop the worker.
    """
    name = f"warm-up/{uuid.uuid4().hex[:12]}"
    text = f"waiting for the workers to load the kernels; where there are none yet: {COMPILING}"
    with notified_if_slow(notify, text):
        waiting = {
            client.submit(warm_up, workers=[worker], key=f"{name}/{number}", pure=False): worker
            for number, worker in enumerate(client.nthreads())
        }
        while waiting:
            with contextlib.suppress(TimeoutError):
                wait(list(waiting), timeout=1.0, return_when="FIRST_COMPLETED")
            there = client.nthreads()
            for task, worker in list(waiting.items()):
                if task.done():
                    task.result()  # raises an error that the first sweep would raise too
                if task.done() or worker not in there:
                    del waiting[task]


def granted_bytes(client: Client) -> list[int]:
    """Memory limits set on workers, below their machine's memory; workers with a common limit get equal shares."""
    answers = client.run(_granted, on_error="ignore").values()
    together = Counter((machine, allowed) for machine, allowed, _ in answers if allowed.by != MACHINE)
    shares = [allowed.bytes // count for (_, allowed), count in together.items()]
    return shares + [each.bytes for *_, each in answers if each is not None]


def _granted() -> tuple[str, Allowed, Allowed | None]:
    """A worker's machine, its limit in common with other processes, and its own limit."""
    return socket.gethostname(), allowed_memory(), allowed_to_each()
