"""Ctrl-C and the hang-up of a terminal reach the process that was started there, but not its workers."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker

__all__ = ["terminal_signals_blocked"]


_OF_TERMINALS = {signal.SIGINT, signal.SIGHUP}


@contextlib.contextmanager
def terminal_signals_blocked() -> Iterator[None]:
    """Block the signals while threads are created that start processes: both inherit the mask. A terminal signals all
    processes in it.

    Without the mask each worker would print a traceback, and die before the driver can end it in order.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_TERMINALS)
    try:
        # Python's resource tracker must outlive this process for a moment. If the hang-up killed it, a new one would
        # start without its list of semaphores, and print a traceback for each. Its start unblocks the signals of this
        # thread, so they are blocked again.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, _OF_TERMINALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
