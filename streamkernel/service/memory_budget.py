"""The bytes that all requests of a process hold together: bodies and answers, in memory and in temporary files.

A limit for each request does not bound the total: a thousand clients can each stay below it. When the total reaches its
limit, requests whose clients are behind are ended, the largest first. If that does not free enough, the request that
needs more is refused.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from streamkernel.service.connections import Waiting
from streamkernel.service.http_errors import Refused
from streamkernel.service.settings import Limits


class Reservation:
    """The bytes held by each request, in memory or in files.

    Parameters
    ----------
    limit : most bytes of all requests together.
    patience : seconds for which a client may be behind before its request can be ended.
    """

    def __init__(self, limit: int, patience: float) -> None:
        self._limit = limit
        self._patience = patience
        self._held: dict[Waiting, int] = {}
        self.total = 0

    def hold(self, holder: Waiting, count: int) -> None:
        """Reserve `count` bytes more for a request.

        Raises
        ------
        Refused
            The limit is reached, and ending the requests of late clients would not free enough.
        """
        if self.total + count > self._limit:
            self._make_room(holder, count)
        self._held[holder] = self._held.get(holder, 0) + count
        self.total += count

    def release(self, holder: Waiting, count: int) -> None:
        """Release `count` bytes of a request, or all that it holds if that is less."""
        held = self._held.get(holder, 0)
        count = min(count, held)
        if count:
            self._held[holder] = held - count
            self.total -= count

    def release_all(self, holder: Waiting) -> None:
        """Release all bytes of a request."""
        self.total -= self._held.pop(holder, 0)

    def _make_room(self, holder: Waiting, count: int) -> None:
        now = asyncio.get_running_loop().time()
        waits = ((each, each.client_wait(now)) for each in self._held if each is not holder)
        late = [each for each, wait in waits if wait is not None and wait >= self._patience]
        if self.total - sum(self._held[each] for each in late) + count <= self._limit:
            for each in sorted(late, key=self._held.__getitem__, reverse=True):
                self.release_all(each)
                each.cut()
                if self.total + count <= self._limit:
                    return
        raise Refused(503, "too many large bodies at the same time; try again later")


@dataclass(frozen=True)
class MemoryBudget:
    """The reservations of one process."""

    memory: Reservation
    files: Reservation

    @classmethod
    def of(cls, limits: Limits) -> MemoryBudget:
        """A budget with these limits."""
        patience = limits.patience_seconds
        return cls(Reservation(limits.memory_bytes, patience), Reservation(limits.spool_bytes, patience))
