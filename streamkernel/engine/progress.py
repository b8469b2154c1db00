"""The progress events of the engine: sweeps, blocks, rows. The CLI draws them; a notebook may too."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receiver of a session's progress. Calls come from one thread at a time."""

    def begin(self, name: str, rows: int, tasks: int) -> None:
        """A sweep over `rows` rows in `tasks` tasks begins."""

    def advance(self, rows: int) -> None:
        """A task of `rows` rows is done."""

    def end(self, seconds: float) -> None:
        """The sweep has ended."""

    def note(self, text: str) -> None:
        """A line for the user: a choice made, a round's certificate."""


class Silent:
    """A receiver that does nothing."""

    def begin(self, name: str, rows: int, tasks: int) -> None:
        pass

    def advance(self, rows: int) -> None:
        pass

    def end(self, seconds: float) -> None:
        pass

    def note(self, text: str) -> None:
        pass
