"""The progress events of the engine: sweeps, blocks, rows. The CLI draws them; a notebook may too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from streamkernel.engine.plan import Plan


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


@runtime_checkable
class ProgressOfPlans(Progress, Protocol):
    """A receiver that also hears of the plan, and of the work between two sweeps."""

    def planned(self, plan: Plan) -> None:
        """A fit with this plan begins."""

    def passed(self, flops: float, share: float) -> None:
        """So many operations of a pass over a sample in memory are done, a share of the pass.

        Calls may come from several threads.
        """


def tell_plan(progress: Progress, plan: Plan) -> None:
    """Tell a receiver that a fit with this plan begins, if it wants to know."""
    if isinstance(progress, ProgressOfPlans):
        progress.planned(plan)


def tell_pass(progress: Progress, flops: float, share: float) -> None:
    """Tell a receiver that operations of a pass over a sample are done, if it wants to know."""
    if isinstance(progress, ProgressOfPlans):
        progress.passed(flops, share)


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

    def planned(self, plan: Plan) -> None:
        pass

    def passed(self, flops: float, share: float) -> None:
        pass
