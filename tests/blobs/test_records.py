"""Numbered records and leases: of several, one; after a death, another; never two."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from streamkernel.blobs import Blobs, Lease, LocalBlobs, RecordLog, blobs_at
from streamkernel.errors import CorruptMetadataError, RunLockedError, StoreError


@pytest.fixture(params=["folder", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return blobs_at(tmp_path / "p" if request.param == "folder" else f"{request.getfixturevalue('s3')}/p")


def test_records_follow_each_other(blobs: Blobs) -> None:
    log = RecordLog(blobs, "log", kept=3)
    assert log.latest() is None
    first = log.append({"n": 1}, after=None)
    assert first is not None
    assert log.append({"n": "other"}, after=None) is None
    record = first
    for n in range(2, 7):
        following = log.append({"n": n}, after=record)
        assert following is not None
        record = following
    assert log.latest() == record
    assert [entry.value["n"] for entry in log.all()] == [4, 5, 6]


@pytest.mark.parametrize("later", range(1, 7))
def test_who_slept_while_numbers_were_cleared_away_has_lost(blobs: Blobs, later: int) -> None:
    """Also whose number is the one just below those that are left."""
    log = RecordLog(blobs, "log", kept=2)
    stale = record = log.append({"n": 1}, after=None)
    for n in range(later):
        record = log.append({"n": n}, after=record)
    assert log.append({"n": "late"}, after=stale) is None
    assert log.latest() == record
    assert len(log.all()) == 2


def test_a_holder_that_slept_has_lost_its_lease_whenever_it_wakes(tmp_path: Path) -> None:
    """Also where the next one has just renewed it so often that the number which the sleeper makes is free again."""
    for renewals in range(12):
        place, clock = blobs_at(tmp_path / str(renewals)), Clock()
        asleep = taken(place, clock)
        clock.now += 11.0
        awake = taken(place, clock, wait=11.0)
        assert awake is not None
        assert all(awake.renew() for _ in range(renewals))
        assert asleep is not None
        assert asleep.renew() is False
        assert awake.held
        assert not asleep.held


def test_a_lost_answer_is_not_a_lost_record(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RecordLog(blobs, "log")
    create = type(blobs).create

    def twice(self: Blobs, key: str, value: bytes) -> bool:
        create(self, key, value)
        return create(self, key, value)

    monkeypatch.setattr(type(blobs), "create", twice)
    assert log.append({"n": 1}, after=None) is not None


def test_a_torn_record_is_named(tmp_path: Path) -> None:
    log = RecordLog(blobs_at(tmp_path), "log")
    log.append({"n": 1}, after=None)
    path = tmp_path / "log" / "00000001.json"
    for content in ("", "[]", "{", '{"number": 2, "nonce": "a", "value": {}}'):
        path.write_text(content)
        with pytest.raises(CorruptMetadataError, match=r"00000001\.json"):
            log.latest()


@pytest.mark.parametrize("writers", [2, 6])
def test_many_writers_lose_nothing(tmp_path: Path, writers: int) -> None:
    place = blobs_at(tmp_path)

    def count() -> None:
        log = RecordLog(place, "log", kept=None)
        for _ in range(10):
            while True:
                latest = log.latest()
                total = 0 if latest is None else latest.value["total"]
                if log.append({"total": total + 1}, after=latest) is not None:
                    break

    threads = [threading.Thread(target=count) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [record.value["total"] for record in RecordLog(place, "log").all()] == list(range(1, 10 * writers + 1))


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def taken(blobs: Blobs, clock: Clock, wait: float = 0.0, ttl: float = 10.0) -> Lease | None:
    return Lease.acquire(blobs, ttl=ttl, wait=wait, keep_alive=False, clock=clock, sleep=clock.sleep)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("stands", ["folder", "link to nothing"])
def test_what_stands_in_the_place_of_the_next_record_is_named(tmp_path: Path, stands: str) -> None:
    """Where no record can be made, and none was, nobody looks again for ever."""
    log, clock = RecordLog(blobs_at(tmp_path), "lease"), Clock()
    first = taken(log.blobs, clock)
    assert first is not None
    first.release()
    latest = log.latest()
    assert latest is not None
    path = tmp_path / "lease" / f"{latest.number + 1:08d}.json"
    path.mkdir() if stands == "folder" else path.symlink_to("nowhere")
    for attempt in (lambda: log.append({}, after=latest), lambda: taken(log.blobs, clock)):
        with pytest.raises(CorruptMetadataError, match=f"{path} is no record, and none can be made; remove it"):
            attempt()
    path.rmdir() if stands == "folder" else path.unlink()
    assert taken(log.blobs, clock) is not None


def test_a_first_record_that_was_removed_again_leaves_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, create = RecordLog(blobs_at(tmp_path), "log"), LocalBlobs.create
    answers = iter([False])
    monkeypatch.setattr(LocalBlobs, "create", lambda self, *what: next(answers, None) is None and create(self, *what))
    assert log.append({"n": 1}, after=None) == log.latest()


def test_one_holder_at_a_time(blobs: Blobs) -> None:
    clock = Clock()
    first = taken(blobs, clock)
    assert first is not None
    assert first.held
    assert taken(blobs, clock, wait=5) is None
    assert first.renew()
    # Watching for longer than its life is of no use while it is renewed.
    first.release()
    assert not first.held
    second = taken(blobs, clock)
    assert second is not None
    first.release()
    assert second.held
    with pytest.raises(RunLockedError, match="lost"):
        first.check()


@pytest.mark.parametrize("torn", [b"", b'{"nonce": "ab', b"[]", b"\xff\xfe"])
def test_a_torn_record_of_a_lease_keeps_nobody_out_for_ever(blobs: Blobs, torn: bytes) -> None:
    """It may be that of a live holder, who makes the next one; after its time to live it is nobody's."""
    clock = Clock()
    first = taken(blobs, clock)
    assert first is not None
    assert first.renew()
    blobs.write("lease/00000002.json", torn)
    assert taken(blobs, clock, wait=5.0) is None
    assert first.renew()
    assert first.held
    assert taken(blobs, clock, wait=5.0) is None
    blobs.write("lease/00000003.json", torn)
    second = taken(blobs, clock, wait=11.0)
    assert second is not None
    assert first.renew() is False
    second.release()
    assert taken(blobs, clock) is not None


def test_a_silent_holder_is_found_out(blobs: Blobs) -> None:
    clock = Clock()
    first = taken(blobs, clock)
    assert first is not None
    second = taken(blobs, clock, wait=15)
    assert second is not None
    assert not first.held
    assert not first.renew()
    assert second.held
    assert second.renew()
    assert [value["holder"] for value in (record.value for record in RecordLog(blobs, "lease").all())][
        -1
    ] == second.holder


def test_kept_alive_by_its_thread(tmp_path: Path) -> None:
    place = blobs_at(tmp_path)
    # A renewal may come a second late, as on a machine that does much else.
    with Lease.acquire(place, ttl=1.5) or pytest.fail("free") as lease:
        assert Lease.acquire(place, ttl=1.5, wait=2.3) is None
        assert lease.held
    assert Lease.acquire(place, ttl=1.5) is not None


CHILD = """
import sys, time
from streamkernel.blobs import Lease, blobs_at
place = blobs_at(sys.argv[1])
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    lease = Lease.acquire(place, ttl=0.8, wait=2.0)
    if lease is None:
        continue
    for _ in range(5):
        if lease.held:
            # An append-only witness: who held it, from when to when (one clock for all processes of a machine).
            began = time.monotonic()
            time.sleep(0.02)
            if lease.held:
                print(lease.holder, began, time.monotonic(), flush=True)
    lease.release()
"""


@pytest.mark.slow
def test_processes_killed_at_any_moment_never_hold_it_together(tmp_path: Path) -> None:
    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / "p"), "7"], stdout=subprocess.PIPE, text=True
        )

    processes = [start() for _ in range(3)]
    for _ in range(3):
        time.sleep(1.2)
        victim = processes[-1]
        os.kill(victim.pid, signal.SIGKILL)
        processes.append(start())
    lines = [line.split() for process in processes for line in process.communicate(timeout=30)[0].splitlines()]
    spans = sorted((float(line[1]), float(line[2]), line[0]) for line in lines if len(line) == 3)
    assert len(Counter(holder for *_, holder in spans)) >= 4
    for (_, ended, before), (began, _, after) in pairwise(spans):
        assert before == after or began >= ended


class Slow(LocalBlobs):
    """A place that answers late; what it was asked is done before."""

    clock: Clock
    seconds = 4.0

    def create(self, key: str, value: bytes) -> bool:
        done = super().create(key, value)
        self.clock.now += self.seconds
        return done


def test_a_lease_lives_from_before_its_record_was_made(tmp_path: Path) -> None:
    """Others count from when they see the record, and that may be long before its maker hears that it is there."""
    clock = Clock()
    slow = Slow(tmp_path)
    slow.clock = clock
    lease = taken(slow, clock, ttl=10.0)
    assert lease is not None
    clock.now = 9.9
    assert lease.held
    assert lease.renew()  # asked at 9.9, answered at 13.9
    clock.now = 19.8
    assert lease.held
    clock.now = 20.0
    assert not lease.held
    with pytest.raises(RunLockedError):
        lease.check()
    # And the first one, of which it is not yet known that it was made.
    lease.release()
    clock.now = 100.0
    again = taken(slow, clock, ttl=10.0)
    assert again is not None
    clock.now = 110.1
    assert not again.held


def test_what_is_known_of_a_silent_holder_shortens_the_watch(tmp_path: Path) -> None:
    """It is watched all the same, for as long as a living one would be silent."""
    clock, place = Clock(), blobs_at(tmp_path)
    first = taken(place, clock, ttl=10.0)
    assert first is not None

    def asked(silent: float, wait: float) -> Lease | None:
        return Lease.acquire(
            place, ttl=10.0, wait=wait, silent=silent, keep_alive=False, clock=clock, sleep=clock.sleep
        )

    assert asked(60.0, 3.9) is None
    assert asked(2.0, 7.9) is None
    began = clock.now
    assert asked(60.0, 8.0) is not None
    assert 4.0 <= clock.now - began < 4.6


def test_a_machine_that_slept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its monotonic clock stood still meanwhile. The lease has lapsed; it is ours again if nobody has taken it."""
    blobs, slept, real = blobs_at(tmp_path), [0.0], time.clock_gettime
    goes_on = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # while the machine sleeps
    monkeypatch.setattr(time, "clock_gettime", lambda which: real(which) + slept[0] * (which == goes_on))
    lease = Lease.acquire(blobs, ttl=10.0, keep_alive=False)
    assert lease is not None
    slept[0] += 3600.0
    assert not lease.held
    with pytest.raises(RunLockedError, match="lost to another driver"):
        lease.check()
    assert lease.renew()
    assert lease.held
    slept[0] += 3600.0
    assert lease.log.append({"holder": "another", "ttl": 10.0}, after=lease.log.latest()) is not None
    assert not lease.held
    assert not lease.renew()


def test_what_was_done_under_a_lease_that_cannot_be_released_is_done(tmp_path: Path, monkeypatch: Any) -> None:
    """The disk is full, or the place is down: the lease expires."""

    def full(*arguments: object, **options: object) -> None:
        raise StoreError("no space left")

    lease = Lease.acquire(blobs_at(tmp_path), keep_alive=False)
    assert lease is not None
    with lease:
        monkeypatch.setattr(RecordLog, "append", full)
    assert not lease.held
