"""A request to stop, set by a signal handler or another thread, and sweeps that end at it."""

from __future__ import annotations

from typing import Protocol

from streamkernel.engine import Plan, Progress, tell_pass, tell_plan


class Stop(Protocol):
    """A request to stop; a `threading.Event` is one."""

    def is_set(self) -> bool: ...


class StopFlag:
    """A request to stop without a lock, unlike an Event, so that a signal handler may set it at any moment."""

    def __init__(self) -> None:
        self._said = False

    def set(self) -> None:
        """Request the stop."""
        self._said = True

    def is_set(self) -> bool:
        """Whether the stop was requested."""
        return self._said


class Abandoned(Exception):
    """A sweep was ended by a request to stop; nothing was written."""


class Stoppable:
    """A `Progress` that passes on each call to another one, and raises `Abandoned` once the stop was requested."""

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

    def planned(self, plan: Plan) -> None:
        tell_plan(self._progress, plan)

    def passed(self, flops: float, share: float) -> None:
        tell_pass(self._progress, flops, share)

    def _check(self) -> None:
        if self._stop.is_set():
            raise Abandoned
