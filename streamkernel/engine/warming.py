"""Workers before their first task: ready for it, and asked what they may have."""

from __future__ import annotations

import contextlib
import socket
import uuid
from collections import Counter

from distributed import Client, wait

from streamkernel.engine.allowed import MACHINE, Allowed, allowed_memory, allowed_to_each
from streamkernel.engine.cluster_tasks import warm_up
from streamkernel.engine.compiling import COMPILING, Tell, told_if_slow

__all__ = ["granted_bytes", "silent", "warm_up_workers"]


def silent(text: str) -> None:
    """Tells nobody."""


def warm_up_workers(client: Client, tell: Tell = silent) -> None:
    """Have every worker load the package and its loops, or compile them, for as long as that takes.

    As tasks: what a broadcast runs stops a worker from giving signs of life, and minutes of a compiler cost its life.
    """
    name = f"warm-up/{uuid.uuid4().hex[:12]}"
    with told_if_slow(tell, f"waiting for the workers to load the kernels; where there are none yet: {COMPILING}"):
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
                    task.result()  # an error is one that the first sweep would meet
                if task.done() or worker not in there:
                    del waiting[task]


def granted_bytes(client: Client) -> list[int]:
    """What was granted to workers that may not have all of their machine: to several together, a share each."""
    told = client.run(_granted, on_error="ignore").values()
    together = Counter((machine, allowed) for machine, allowed, _ in told if allowed.by != MACHINE)
    shares = [allowed.bytes // count for (_, allowed), count in together.items()]
    return shares + [each.bytes for *_, each in told if each is not None]


def _granted() -> tuple[str, Allowed, Allowed | None]:
    """Of a worker: its machine, what may be had there by it and others together, and by it alone."""
    return socket.gethostname(), allowed_memory(), allowed_to_each()
