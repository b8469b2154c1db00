"""Signals for a whole group of processes are for the one that was started there, not for each of its workers.

A terminal sends Ctrl-C and its own end to all that run in it; batch systems and supervisors send SIGTERM so.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker

_OF_GROUPS = {signal.SIGINT, signal.SIGHUP, signal.SIGTERM}


@contextlib.contextmanager
def group_signals_blocked() -> Iterator[None]:
    """Block these signals while threads are made that start processes; both inherit the blocking.

    Otherwise a signal ends the workers in mid-sweep, before the driver can save the sweep's state, and each prints a
    traceback. Dask ends its workers by a message, and by SIGKILL if they do not answer it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_GROUPS)
    try:
        # Python's resource tracker must outlive this process for a moment. If the hang-up killed it, a new one would
        # start without its list of semaphores, and print a traceback for each. Its start unblocks the signals of this
        # thread, so they are blocked again.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, _OF_GROUPS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
