"""Ctrl-C and a terminal that is closed are for the process that was started there, not for each of its workers."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker

__all__ = ["terminal_signals_blocked"]


_OF_TERMINALS = {signal.SIGINT, signal.SIGHUP}


@contextlib.contextmanager
def terminal_signals_blocked() -> Iterator[None]:
    """While threads are made that start processes: both inherit it, and a terminal signals all that run in it.

    Each of the workers would print a traceback, and die in the middle of what is to be ended in order.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_TERMINALS)
    try:
        # Python's helper for semaphores outlives us by a moment; killed by the hang-up, it would be started once more,
        # know nothing of them, and print a traceback for each. Starting it gives this thread its signals back.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, _OF_TERMINALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
