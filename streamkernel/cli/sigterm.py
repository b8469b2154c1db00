"""SIGTERM: the process finishes the present sweep, stores its checkpoint and ends; a second SIGTERM ends it at once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

from streamkernel.cli.ending_signals import EndedBySignal
from streamkernel.engine import Progress


class _Watched:
    """A `Progress` that passes on each call to another one, and ends the session between two sweeps after SIGTERM."""

    def __init__(self, watcher: Progress) -> None:
        self._watcher = watcher
        self.told = False

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self._end_if_told()
        self._watcher.begin(name, rows, tasks)

    def advance(self, rows: int) -> None:
        self._watcher.advance(rows)

    def end(self, seconds: float) -> None:
        # A session reports the end of a sweep after its checkpoint is stored.
        self._watcher.end(seconds)
        self._end_if_told()

    def note(self, text: str) -> None:
        self._watcher.note(text)

    def _end_if_told(self) -> None:
        if self.told:
            raise EndedBySignal(signal.SIGTERM, "ended by SIGTERM between two sweeps")


@contextlib.contextmanager
def ends_after_sweep(watcher: Progress, quiet: bool) -> Iterator[Progress]:
    """Yield the `Progress` for a session, with which SIGTERM ends it after the present sweep and its checkpoint.

    Raises
    ------
    EndedBySignal
    """
    watched = _Watched(watcher)
    if threading.current_thread() is not threading.main_thread():
        yield watched
        return
    former = signal.getsignal(signal.SIGTERM)

    def say(number: int, frame: object) -> None:
        watched.told = True
        signal.signal(signal.SIGTERM, former)
        if not quiet:
            # os.write, because the signal may interrupt the console in the middle of a write to its buffers.
            os.write(2, b"SIGTERM: ends after this sweep; a second one ends at once\n")

    signal.signal(signal.SIGTERM, say)
    try:
        yield watched
    finally:
        signal.signal(signal.SIGTERM, former)
