"""What all requests of a process hold together: bodies and answers, in memory and in temporary files.

A limit for one request bounds nothing: a thousand clients can each stay below it. Where the room is full, those whose
clients are behind give way, the largest first; where none is, the request that needs more is refused.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from streamkernel.service.http_errors import Refused
from streamkernel.service.settings import Limits

__all__ = ["Holder", "MemoryBudget", "Reservation"]


class Holder(Protocol):
    """A request."""

    def kept_waiting(self, now: float) -> float | None:
        """Seconds for which its client is behind; None where we are at work."""

    def cut(self) -> None:
        """End it."""


class Reservation:
    """Parameters
    ----------
    limit : bytes. patience : seconds for which a client may be behind.
    """

    def __init__(self, limit: int, patience: float) -> None:
        self._limit = limit
        self._patience = patience
        self._held: dict[Holder, int] = {}
        self.total = 0

    def hold(self, holder: Holder, count: int) -> None:
        """So many bytes more.

        Raises
        ------
        Refused
            There is no room, and nobody who keeps us waiting has enough of it.
        """
        if self.total + count > self._limit:
            self._make_room(holder, count)
        self._held[holder] = self._held.get(holder, 0) + count
        self.total += count

    def let_go(self, holder: Holder, count: int) -> None:
        """So many bytes less, or all that it holds."""
        held = self._held.get(holder, 0)
        count = min(count, held)
        if count:
            self._held[holder] = held - count
            self.total -= count

    def leave(self, holder: Holder) -> None:
        """The request is over."""
        self.total -= self._held.pop(holder, 0)

    def _make_room(self, wanting: Holder, count: int) -> None:
        now = asyncio.get_running_loop().time()
        waits = ((each, each.kept_waiting(now)) for each in self._held if each is not wanting)
        behind = [each for each, wait in waits if wait is not None and wait >= self._patience]
        if self.total - sum(self._held[each] for each in behind) + count <= self._limit:
            for each in sorted(behind, key=self._held.__getitem__, reverse=True):
                self.leave(each)
                each.cut()
                if self.total + count <= self._limit:
                    return
        raise Refused(503, "too many large bodies at the same time; come again later")


@dataclass(frozen=True)
class MemoryBudget:
    """Of one process."""

    memory: Reservation
    files: Reservation

    @classmethod
    def of(cls, limits: Limits) -> MemoryBudget:
        """With these limits."""
        patience = limits.patience_seconds
        return cls(Reservation(limits.memory_bytes, patience), Reservation(limits.spool_bytes, patience))
