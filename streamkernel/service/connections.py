"""All connections of a process: how many there are, how long each may keep us waiting, and which one gives way.

One look a quarter of a second at all of them costs less than a timer for each state of each.
"""

from __future__ import annotations

import asyncio
import heapq
import ipaddress
from collections.abc import Iterable
from typing import Protocol

from streamkernel.service.settings import Limits

__all__ = ["Client", "Connections", "address_of"]

_LOOK_SECONDS = 0.25
# Where nobody can give way, nobody is looked for again for so long; where many can, so many go at once.
_AGAIN_SECONDS, _AT_ONCE = 0.05, 64


class Client(Protocol):
    """A connection, encrypted or not yet, as the door sees it."""

    def kept_waiting(self, now: float) -> float | None:
        """Seconds for which its client has kept us waiting, 0 at first; None where we are at work."""

    def is_over(self, now: float) -> bool:
        """Whether a wait has lasted as long as it may."""

    def cut(self) -> None:
        """End it."""


class Connections:
    """Parameters
    ----------
    limits : of connections and waits.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.ending = False
        # What is read goes through here at once, never two connections at a time.
        self.buffer = bytearray(limits.read_bytes)
        # With their addresses, and how many there are of each.
        self._connections: dict[Client, str] = {}
        self._places: dict[str, int] = {}
        self._look: asyncio.TimerHandle | None = None
        self._full_until = 0.0

    def __len__(self) -> int:
        return len(self._connections)

    def enter(self, connection: Client, address: str) -> bool:
        """Whether there is a place, or one can be made."""
        if len(self._connections) >= self.limits.connections and not self._make_place(address):
            return False
        self._connections[connection] = address
        self._places[address] = self._places.get(address, 0) + 1
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look_at_all)
        return True

    def leave(self, connection: Client) -> None:
        """The connection is lost, or does not count any more."""
        address = self._connections.pop(connection, None)
        if address is not None:
            self._places[address] -= 1
            if not self._places[address]:
                del self._places[address]

    def end(self) -> None:
        """Told to end: who keeps us waiting is waited for no longer than a connection that others need."""
        self.ending = True

    def _make_place(self, address: str) -> bool:
        now = asyncio.get_running_loop().time()
        if now >= self._full_until:
            if self._cut_slowest(self._connections, self.limits.patience_seconds, _AT_ONCE, now):
                return True
            self._full_until = now + _AGAIN_SECONDS
        return self._share(address, now)

    def _share(self, address: str, now: float) -> bool:
        """Who connects again before patience ends could have all places: an address with most gives some to others."""
        most = max(self._places, key=self._places.__getitem__)
        spare = (self._places[most] - self._places.get(address, 0)) // 2
        if spare < 1:
            return False
        theirs = [each for each, where in self._connections.items() if where == most]
        return self._cut_slowest(theirs, 0.0, min(spare, _AT_ONCE), now)

    def _cut_slowest(self, connections: Iterable[Client], patience: float, most: int, now: float) -> bool:
        """End those that have kept us waiting for the longest; whether there are any that have for so long."""
        waits = ((each.kept_waiting(now), id(each), each) for each in connections)
        behind = ((wait, tie, each) for wait, tie, each in waits if wait is not None and wait >= patience)
        slowest = heapq.nlargest(most, behind)
        for _, _, connection in slowest:
            connection.cut()
        return bool(slowest)

    def _is_late(self, connection: Client, now: float) -> bool:
        wait = connection.kept_waiting(now)
        return wait is not None and wait >= self.limits.patience_seconds

    def _look_at_all(self) -> None:
        self._look = None
        now = asyncio.get_running_loop().time()
        for connection in list(self._connections):
            if connection.is_over(now) or (self.ending and self._is_late(connection, now)):
                connection.cut()
        if self._connections:
            self._look = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look_at_all)


def address_of(transport: asyncio.BaseTransport) -> str:
    """Of the other end; of IPv6 the network, all of which is one client's."""
    peer = transport.get_extra_info("peername")
    if not peer:
        return ""
    text = str(peer[0]).partition("%")[0]
    if ":" not in text:
        return text
    address = ipaddress.IPv6Address(text)
    return str(address.ipv4_mapped or ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
