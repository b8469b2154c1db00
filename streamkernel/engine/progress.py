"""What the engine tells whoever watches: sweeps, blocks, rows. The CLI draws it; a notebook may too."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Progress", "Silent"]


class Progress(Protocol):
    """Watcher of a session. Calls come from one thread at a time."""

    def begin(self, name: str, rows: int, tasks: int) -> None:
        """A sweep over `rows` rows in `tasks` tasks begins."""

    def advance(self, rows: int) -> None:
        """A task with so many rows is done."""

    def end(self, seconds: float) -> None:
        """The sweep has ended."""

    def note(self, text: str) -> None:
        """Something worth a line: a choice made, a round's certificate."""


class Silent:
    """Watches nothing."""

    def begin(self, name: str, rows: int, tasks: int) -> None:
        pass

    def advance(self, rows: int) -> None:
        pass

    def end(self, seconds: float) -> None:
        pass

    def note(self, text: str) -> None:
        pass
