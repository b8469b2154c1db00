"""A sweep whose workers are all paused.

A worker that holds 80 % of its memory limit begins no task until it holds less. If other work holds the memory, such as
rows that a user has persisted on the cluster, this never happens, and nothing says so: the sweep would wait for ever.
"""

from __future__ import annotations

import time

from distributed import Client

from streamkernel.byte_counts import format_bytes
from streamkernel.engine.cluster.cluster_state import Pause, paused_workers
from streamkernel.errors import ResourceLimitError

_PATIENCE = 60.0  # seconds, as a sweep waits for workers where there are none
_LOOK = 5.0  # seconds between two questions


class PauseWatch:
    """Ends a sweep that does not move because all workers are paused.

    Parameters
    ----------
    scheduler : name of the scheduler, for the error.
    """

    def __init__(self, client: Client, scheduler: str) -> None:
        self._client, self._scheduler = client, scheduler
        self._moved = self._looked = time.monotonic()

    def look(self, moved: bool) -> None:
        """Look whether the workers are paused.

        Parameters
        ----------
        moved : whether a task has ended since the last look.

        Raises
        ------
        ResourceLimitError
            All workers are paused, and no task has ended for a minute.
        """
        now = time.monotonic()
        if moved:
            self._moved = now
        if now - self._moved < _PATIENCE or now - self._looked < _LOOK:
            return
        self._looked = now
        found = paused_workers(self._client)
        if found is not None:
            raise ResourceLimitError(self._message(found))

    def _message(self, paused: list[Pause]) -> str:
        fullest = max(paused, key=lambda each: each.held / each.limit if each.limit else 0.0)
        return (
            f"no task has ended for {_PATIENCE:.0f} s: Dask has paused all workers of {self._scheduler} (there are "
            f"{len(paused)}) for their memory; {fullest.worker} holds {format_bytes(fullest.held)} of "
            f"{format_bytes(fullest.limit)}; free what other work holds on them, or start workers with a larger memory "
            "limit, and resume"
        )
