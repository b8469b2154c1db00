"""A word to stop, said by a handler of signals or by another thread, and sweeps that hear it."""

from __future__ import annotations

from typing import Protocol

from streamkernel.engine import Progress

__all__ = ["Abandoned", "Stop", "StopWord", "Stoppable"]


class Stop(Protocol):
    """Whether to stop; an Event will do."""

    def is_set(self) -> bool: ...


class StopWord:
    """Said once; other than an Event it has no lock, so that a handler of signals may say it at any moment."""

    def __init__(self) -> None:
        self._said = False

    def set(self) -> None:
        """Say it."""
        self._said = True

    def is_set(self) -> bool:
        """Whether it was said."""
        return self._said


class Abandoned(Exception):
    """A sweep that was not to go on; nothing was written."""


class Stoppable:
    """Watches a session for another watcher, and ends it at the next task once the word is said."""

    def __init__(self, progress: Progress, stop: Stop) -> None:
        self._progress, self._stop = progress, stop

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self._check()
        self._progress.begin(name, rows, tasks)

    def advance(self, rows: int) -> None:
        self._check()
        self._progress.advance(rows)

    def end(self, seconds: float) -> None:
        self._progress.end(seconds)

    def note(self, text: str) -> None:
        self._progress.note(text)

    def _check(self) -> None:
        if self._stop.is_set():
            raise Abandoned
