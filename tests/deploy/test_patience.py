"""How long is waited for processes: seconds in which all were stopped do not count, those of a hang do."""

from __future__ import annotations

import time

import pytest
from clusters import Patience


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [5.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def looks(patience: Patience, clock: list[float], seconds: float) -> int:
    """How many there are until it is over, so many seconds apart."""
    number = 0
    while not patience.is_over():
        clock[0] += seconds
        number += 1
    return number


def test_a_hang_is_over(clock: list[float]) -> None:
    assert 119 <= looks(Patience(60.0), clock, 0.5) <= 122


def test_one_that_was_stopped_goes_on(clock: list[float]) -> None:
    patience = Patience(60.0)
    clock[0] += 3600.0
    assert not patience.is_over()
    assert 115 <= looks(patience, clock, 0.5) <= 119


def test_slow_looks_end_too(clock: list[float]) -> None:
    assert looks(Patience(60.0), clock, 10.0) <= 32
