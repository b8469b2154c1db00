"""A progress that interrupts a run, as Ctrl-C does."""

from __future__ import annotations

from streamkernel.engine import Silent


class Interrupt(Silent):
    """An interruption in the middle of a sweep."""

    def __init__(self, sweep: int) -> None:
        self.left = sweep

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
