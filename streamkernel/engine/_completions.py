"""The futures of a sweep that the driver waits for, and what follows each of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from distributed import Client, as_completed

from streamkernel.engine.cluster_state import ClosedClientError

if TYPE_CHECKING:
    from distributed import Future as _Future

    Future = _Future[Any]  # a class without parameters before distributed 2025.12

_LOOK = 0.02  # seconds


class Completions:
    """Calls a function for each future that has finished or failed, in the driver's thread.

    Parameters
    ----------
    client : client of all the futures.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._ready = as_completed(loop=client.loop)  # this client's loop, not that of the default client
        self._then: dict[Future, Callable[[Future], None]] = {}

    def watch(self, future: Future, then: Callable[[Future], None]) -> None:
        """Call ``then(future)`` when it is done."""
        self._then[future] = then
        self._ready.add(future)

    def forget(self, future: Future) -> None:
        """Give a future up: its task is not needed any more, and nothing follows."""
        self._then.pop(future, None)
        future.release()

    def handle(self) -> None:
        """Handle the futures that are done; wait a moment for one where there is none.

        It waits in short intervals, because a client that another thread closes may not wake this one: closing does not
        cancel a future that is submitted or awaited at that moment, and its event loop is gone.
        """
        pause, until = 0.001, time.monotonic() + _LOOK
        while not self._ready.has_ready():
            if self._client.status == "closed" and not self._ready.has_ready():
                raise ClosedClientError("the client was closed")
            if time.monotonic() > until:
                return
            time.sleep(pause)
            pause *= 2
        for future in self._ready.next_batch(block=False):
            then = self._then.pop(future, None)
            if then is not None:
                then(future)
