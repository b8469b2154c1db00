"""All connections of a process: how many there are, how long each may keep us waiting, and which one gives way.

One look a quarter of a second at all of them costs less than a timer for each state of each.
"""

from __future__ import annotations

import asyncio
import heapq
from typing import Protocol

from streamkernel.service.settings import Limits

__all__ = ["Client", "Door"]

_LOOK_SECONDS = 0.25
# Where nobody can give way, nobody is looked for again for so long; where many can, so many go at once.
_AGAIN_SECONDS, _AT_ONCE = 0.05, 64


class Client(Protocol):
    """A connection, encrypted or not yet, as the door sees it."""

    def kept_waiting(self, now: float) -> float:
        """Seconds for which its client has kept us waiting."""

    def is_over(self, now: float) -> bool:
        """Whether a wait has lasted as long as it may."""

    def cut(self) -> None:
        """End it."""


class Door:
    """Parameters
    ----------
    limits : of connections and waits.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.ending = False
        # What is read goes through here at once, never two connections at a time.
        self.buffer = bytearray(limits.read_bytes)
        self._connections: dict[Client, None] = {}
        self._look: asyncio.TimerHandle | None = None
        self._full_until = 0.0

    def __len__(self) -> int:
        return len(self._connections)

    def enter(self, connection: Client) -> bool:
        """Whether there is a place, or one can be made."""
        if len(self._connections) >= self.limits.connections and not self._make_place():
            return False
        self._connections[connection] = None
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look_at_all)
        return True

    def leave(self, connection: Client) -> None:
        """The connection is lost, or does not count any more."""
        self._connections.pop(connection, None)

    def end(self) -> None:
        """Told to end: who keeps us waiting is waited for no longer than a connection that others need."""
        self.ending = True

    def _make_place(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now < self._full_until:
            return False
        patience = self.limits.patience_seconds
        waits = ((each.kept_waiting(now), id(each), each) for each in self._connections)
        slowest = heapq.nlargest(_AT_ONCE, (wait for wait in waits if wait[0] >= patience))
        for _, _, connection in slowest:
            connection.cut()
        if not slowest:
            self._full_until = now + _AGAIN_SECONDS
        return bool(slowest)

    def _look_at_all(self) -> None:
        self._look = None
        now = asyncio.get_running_loop().time()
        for connection in list(self._connections):
            if connection.is_over(now) or (
                self.ending and connection.kept_waiting(now) >= self.limits.patience_seconds
            ):
                connection.cut()
        if self._connections:
            self._look = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look_at_all)
