"""Who gives way where memory is wanted: those that are behind, the largest first, and only where that is enough."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from service.bodies import as_arrow, as_npy, refused

from streamkernel.service import Settings
from streamkernel.service.formats import MEDIA_TYPES
from streamkernel.service.formats.answers import Spool
from streamkernel.service.http_errors import Refused
from streamkernel.service.memory_budget import Reservation

LIMIT, PATIENCE = 100, 1.0


class Body:
    """A request whose client has been behind for so long, and what it holds."""

    def __init__(self, room: Reservation, held: int, seconds: float | None = None) -> None:
        self.seconds, self.ended = seconds, False
        room.hold(self, held)

    def client_wait(self, now: float) -> float | None:
        return self.seconds

    def cut(self) -> None:
        self.ended = True


def wanted(count: int, *others: tuple[int, float | None], patience: float = PATIENCE) -> tuple[bool, list[bool], int]:
    """Whether there is room for so much more, who has given way, and what is held then."""

    async def want() -> tuple[bool, list[bool], int]:
        room = Reservation(LIMIT, patience)
        held = [Body(room, *each) for each in others]
        try:
            Body(room, count)
        except Refused:
            return False, [each.ended for each in held], room.total
        return True, [each.ended for each in held], room.total

    return asyncio.run(want())


def test_all_of_it_can_be_held() -> None:
    assert wanted(60, (40, 5.0)) == (True, [False], 100)


def test_the_largest_that_is_behind_gives_way_and_no_more_than_are_needed() -> None:
    assert wanted(30, (20, 5.0), (40, 5.0), (30, 9.0)) == (True, [False, True, False], 80)
    assert wanted(60, (20, 5.0), (40, 5.0), (30, 9.0)) == (True, [False, True, True], 80)


@pytest.mark.parametrize("patience", [PATIENCE, 0.0])
def test_who_is_at_work_or_not_behind_keeps_what_it_holds(patience: float) -> None:
    assert wanted(30, (90, None), patience=patience) == (False, [False], 90)
    assert wanted(30, (90, 0.9)) == (False, [False], 90)
    assert wanted(30, (50, None), (40, 2.0), patience=patience) == (True, [False, True], 80)


def test_nobody_gives_way_where_that_is_not_enough() -> None:
    assert wanted(70, (40, None), (50, 5.0)) == (False, [False, False], 90)
    assert wanted(101, (50, 5.0)) == (False, [False], 50)


def test_what_wants_more_does_not_give_way_to_itself() -> None:
    async def want() -> None:
        room = Reservation(LIMIT, PATIENCE)
        body = Body(room, 90, 5.0)
        with pytest.raises(Refused):
            room.hold(body, 20)
        assert not body.ended
        assert room.total == 90

    asyncio.run(want())


def test_what_is_let_go_can_be_held_again() -> None:
    async def want() -> None:
        room = Reservation(LIMIT, PATIENCE)
        first = Body(room, 90)
        room.release(first, 50)
        second = Body(room, 60)
        assert room.total == 100
        room.release(first, 1000)
        assert room.total == 60
        room.release_all(second)
        room.release_all(second)
        assert room.total == 0

    asyncio.run(want())


def predicted(url: str, form: str, body: bytes) -> httpx.Response:
    headers = {"content-type": MEDIA_TYPES[form], "accept": MEDIA_TYPES["npy"]}
    return httpx.post(
        f"{url}/v1/models/ridge/predict", content=body, headers=headers, trust_env=False, timeout=20
    )  # fmt: skip


def test_what_is_kept_in_files_has_its_own_room(saved: Path, live: Any) -> None:
    """An Arrow body of 1.9 MB, and answers of 1.6 MB, each of which is kept in a file until it is over."""
    running = live(Settings(saved).with_limits(spool_bytes=2_500_000))
    arrow, few = as_arrow(np.ones((60_000, 4)), batch=60_000), as_npy(np.ones((200_000, 4), np.float16))
    for _ in range(3):
        assert predicted(running.url, "arrow", arrow).status_code == 200
        assert predicted(running.url, "npy", few).status_code == 200
    many = as_arrow(np.ones((90_000, 4)), batch=90_000)
    refused(predicted(running.url, "arrow", many), 503, "Overloaded", "large bodies")
    many = as_npy(np.ones((400_000, 4), np.float16))
    refused(predicted(running.url, "npy", many), 503, "Overloaded", "large bodies")
    assert predicted(running.url, "arrow", arrow).status_code == 200


def test_a_body_that_is_worked_up_while_it_comes_needs_room_for_a_part(saved: Path, live: Any) -> None:
    running = live(Settings(saved).with_limits(memory_bytes=9 << 20))
    body = as_npy(np.ones((400_000, 4)))
    assert len(body) > 9 << 20
    assert predicted(running.url, "npy", body).status_code == 200


@pytest.mark.parametrize("streams", [1, 2])
def test_blocks_at_work_are_as_few_as_they_may_be(saved: Path, live: Any, streams: int) -> None:
    """However many threads there are, and clients."""
    running = live(Settings(saved, threads=4).with_limits(streams=streams))
    at_work, most, lock = 0, 0, threading.Lock()
    predict = running.service.predict
    block = predict._block

    def watched(*arguments: Any) -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.1)
        block(*arguments)
        with lock:
            at_work -= 1

    predict._block = watched
    threads = [
        threading.Thread(target=predicted, args=(running.url, form, body))
        for form, body in (("npy", as_npy(np.ones((9, 4)))), ("arrow", as_arrow(np.ones((9, 4))))) * 3
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == streams


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_a_disk_that_is_full_of_answers_is_told_without_paths(
    saved: Path, live: Any, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    running, body = live(Settings(saved)), as_npy(np.ones((200_000, 4), np.float16))

    def full(*_: Any) -> None:
        raise OSError(number, os.strerror(number), "/tmp/answers")

    with monkeypatch.context() as patched:
        patched.setattr(Spool, "append", full)
        told = "the service is short of disk, files or memory; try again later"
        refused(predicted(running.url, "npy", body), 503, "Overloaded", told)
    assert predicted(running.url, "npy", body).status_code == 200
