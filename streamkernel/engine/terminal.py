"""Ctrl-C and a terminal that is closed are for the process that was started there, not for each of its workers."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker

__all__ = ["terminal_signals_blocked"]


@contextlib.contextmanager
def terminal_signals_blocked() -> Iterator[None]:
    """While threads are made that start processes: both inherit it, and a terminal signals all that run in it.

    Each of the workers would print a traceback, and die in the middle of what is to be ended in order.
    """
    # Beforehand: the thread that starts it has these signals again afterwards, and so would its first worker.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
