"""The end of a process of the service: quickly, and with status 0 after a signal."""

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

_TIDY_SECONDS = 2.0  # for threads to remove their files


class _Ended(BaseException):
    """SIGINT or SIGTERM."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End the block without an error on SIGINT or SIGTERM.

    This covers the time before the web server handles signals, and its end, when it raises the signal again.
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
    """End the process with status 0, without Python's finalization.

    Finalization takes seconds for compilers, and half a minute for a thread that waits for a store. In that time no
    signal can end the process.
    """
    last = time.monotonic() + _TIDY_SECONDS
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join(max(0.0, last - time.monotonic()))
    logging.shutdown()
    os._exit(0)
