"""How a process of the service ends: at once where it can, and with status 0 where it was told to."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

__all__ = ["ended_by_signals", "leave"]

_TIDY_SECONDS = 2.0  # for threads to remove their files


class _Ended(BaseException):
    """SIGINT or SIGTERM."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """To be told to end, and to end, is no failure: before the web server listens to signals, and when it has ended.

    It then raises what it was told again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise _Ended

    former = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except _Ended:
        pass
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def leave() -> NoReturn:
    """End the process, with status 0, without having it taken down.

    That takes seconds for compilers, and half a minute for a thread that waits for a store, in which nothing can end
    the process any more.
    """
    last = time.monotonic() + _TIDY_SECONDS
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join(max(0.0, last - time.monotonic()))
    logging.shutdown()
    os._exit(0)
