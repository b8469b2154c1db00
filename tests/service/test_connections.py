"""Who gives way to whom, where times are exact: clients here wait for as long as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from streamkernel.service.connections import Connections, address_of
from streamkernel.service.settings import Limits

LIMITS = Limits(connections=4, patience_seconds=1.0)
THEIRS, OURS = "127.0.0.2", "127.0.0.1"


class Waiting:
    """A client that has kept us waiting for so long."""

    def __init__(self, connections: Connections, seconds: float | None) -> None:
        self.connections, self.seconds, self.ended = connections, seconds, False

    def client_wait(self, now: float) -> float | None:
        return self.seconds

    def is_expired(self, now: float) -> bool:
        return False

    def cut(self) -> None:
        self.ended = True
        self.connections.remove(self)


def entered(waits: Sequence[float | None], address: str = THEIRS, limits: Limits = LIMITS) -> tuple[bool, list[bool]]:
    """Whether one more client finds a place where so many others are, and which of these gave theirs."""

    async def enter() -> tuple[bool, list[bool]]:
        connections = Connections(limits)
        others = [Waiting(connections, seconds) for seconds in waits]
        assert all(connections.add(each, address) for each in others)
        found = connections.add(Waiting(connections, 0.0), OURS)
        assert len(connections) <= limits.connections
        return found, [each.ended for each in others]

    return asyncio.run(enter())


def test_who_came_in_the_same_tick_gives_way() -> None:
    """The clock of an event loop may have ticks of a millisecond, in which a storm takes all places."""
    found, ended = entered([0.0] * 4)
    assert found
    assert sum(ended) == 2


@pytest.mark.parametrize("patience", [1.0, 0.0])
def test_who_is_at_work_never_gives_way(patience: float) -> None:
    limits = Limits(connections=4, patience_seconds=patience)
    assert entered([None] * 4, limits=limits) == (False, [False] * 4)
    assert entered([None, 5.0, None, None], limits=limits) == (True, [False, True, False, False])


def test_an_address_gives_away_what_it_has_more_than_others() -> None:
    """The longest first, and never more than half of what is more."""
    found, ended = entered([0.1, 0.4, 0.2, 0.3])
    assert (found, ended) == (True, [False, True, False, True])
    assert entered([0.9] * 4, OURS) == (False, [False] * 4)


@pytest.mark.parametrize(
    ("peer", "told"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_an_address_is_what_one_client_can_have(peer: str, told: str) -> None:
    transport = asyncio.Transport({"peername": (peer, 1)})
    assert address_of(transport) == told
    assert address_of(asyncio.Transport()) == ""
