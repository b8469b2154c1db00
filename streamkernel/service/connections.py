"""All connections of a process: their number, their time limits, and which one is closed when there are too many.

All connections are checked four times a second. That costs less than a timer for each state of each connection.
"""

from __future__ import annotations

import asyncio
import heapq
import ipaddress
from collections.abc import Iterable
from typing import Protocol

from streamkernel.service.settings import Limits

_CHECK_SECONDS = 0.25
# Seconds before the next search, when a search has found no connection to close; and the most that one search closes.
_RETRY_SECONDS, _MOST_CLOSED = 0.05, 64


class Waiting(Protocol):
    """A connection or a request, which waits for its client at times."""

    def client_wait(self, now: float) -> float | None:
        """Seconds for which the client is behind; None while the service is at work."""

    def cut(self) -> None:
        """Close the connection at once, in any state."""


class Client(Waiting, Protocol):
    """A connection, before or after its TLS handshake, as `Connections` sees it."""

    def is_expired(self, now: float) -> bool:
        """Whether the wait has exceeded its limit."""


class Connections:
    """Parameters
    ----------
    limits : limits of connections and of waits.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.ending = False
        # Shared by all connections: what one reads is taken out before another reads.
        self.buffer = bytearray(limits.read_bytes)
        # The address of each connection, and the number of connections from each address.
        self._connections: dict[Client, str] = {}
        self._counts: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._full_until = 0.0

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, connection: Client, address: str) -> bool:
        """Register a connection; False if there is no place for it and none can be made."""
        if len(self._connections) >= self.limits.connections and not self._make_room(address):
            return False
        self._connections[connection] = address
        self._counts[address] = self._counts.get(address, 0) + 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_CHECK_SECONDS, self._check_all)
        return True

    def remove(self, connection: Client) -> None:
        """Remove a connection; one that is not registered is ignored."""
        address = self._connections.pop(connection, None)
        if address is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]

    def start_shutdown(self) -> None:
        """The service ends: from now on, close every connection whose client is late by more than the patience."""
        self.ending = True

    def _make_room(self, address: str) -> bool:
        now = asyncio.get_running_loop().time()
        if now >= self._full_until:
            if self._cut_slowest(self._connections, self.limits.patience_seconds, _MOST_CLOSED, now):
                return True
            self._full_until = now + _RETRY_SECONDS
        return self._close_of_largest(address, now)

    def _close_of_largest(self, address: str, now: float) -> bool:
        """Close connections of the address that has most of them, in favour of `address`.

        Without this, a client that connects again before the patience ends could hold all places.
        """
        most = max(self._counts, key=self._counts.__getitem__)
        spare = (self._counts[most] - self._counts.get(address, 0)) // 2
        if spare < 1:
            return False
        connections = [each for each, where in self._connections.items() if where == most]
        return self._cut_slowest(connections, 0.0, min(spare, _MOST_CLOSED), now)

    def _cut_slowest(self, connections: Iterable[Client], patience: float, most: int, now: float) -> bool:
        """Close up to `most` connections with the longest waits, none below `patience`; whether any was closed."""
        waits = ((each.client_wait(now), id(each), each) for each in connections)
        late = ((wait, tie, each) for wait, tie, each in waits if wait is not None and wait >= patience)
        slowest = heapq.nlargest(most, late)
        for _, _, connection in slowest:
            connection.cut()
        return bool(slowest)

    def _is_late(self, connection: Client, now: float) -> bool:
        wait = connection.client_wait(now)
        return wait is not None and wait >= self.limits.patience_seconds

    def _check_all(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for connection in list(self._connections):
            if connection.is_expired(now) or (self.ending and self._is_late(connection, now)):
                connection.cut()
        if self._connections:
            self._timer = asyncio.get_running_loop().call_later(_CHECK_SECONDS, self._check_all)


def address_of(transport: asyncio.BaseTransport) -> str:
    """The client's address; for IPv6 its /64 network, because all of it usually belongs to one client."""
    peer = transport.get_extra_info("peername")
    if not peer:
        return ""
    host = str(peer[0]).partition("%")[0]
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host)
    return str(address.ipv4_mapped or ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
