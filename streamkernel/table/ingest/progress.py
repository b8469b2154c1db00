"""The progress of a long job: three calls, for a bar, a log or a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast


class Progress(Protocol):
    """A receiver of progress: start once, advance often, finish once (also after an error)."""

    def start(self, total: int | None, unit: str) -> None:
        """A stage of `total` bytes or rows (None: unknown) begins."""

    def advance(self, amount: int) -> None:
        """`amount` more is done."""

    def finish(self) -> None:
        """The stage is over."""


class _Called(Progress):
    def __init__(self, call: Callable[[int, int | None, str], object]) -> None:
        self._call = call
        self._done = 0
        self._total: int | None = None
        self._unit = "rows"

    def start(self, total: int | None, unit: str) -> None:
        self._done, self._total, self._unit = 0, total, unit

    def advance(self, amount: int) -> None:
        self._done += amount
        self._call(self._done, self._total, self._unit)

    def finish(self) -> None:
        return


def as_progress(progress: Progress | Callable[[int, int | None, str], object] | None) -> Progress:
    """A `Progress`; a plain callable is called with (done, total or None, unit)."""
    if progress is None:
        return _Called(lambda done, total, unit: None)
    return _Called(progress) if not hasattr(progress, "advance") else cast(Progress, progress)
