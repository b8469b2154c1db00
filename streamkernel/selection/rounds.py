"""Stopping of a rule that works in rounds, when the rank is exhausted: the number of rounds is bounded for all data."""

from __future__ import annotations

from dataclasses import dataclass

from streamkernel.selection._takes import Take

_EMPTY = 3  # successive rounds without a new function, which end the rule
_SHORT = 10  # short rounds beyond the number of planned rounds, which end the rule


@dataclass
class Rounds:
    """Count of the rounds so far that added fewer functions than requested, as draws from few distinct rows do.

    Each round reads rows, and a round that adds one function is hardly worth its sweep: a plan with few sweeps must end
    after few. The rule therefore ends after 3 successive rounds without a function, or when the number of short rounds
    exceeds the number of planned rounds by more than 10.

    Parameters
    ----------
    planned : number of rounds to n functions if no round is short.
    """

    planned: int
    _empty: int = 0
    _short: int = 0

    @classmethod
    def of(cls, take: Take, n: int) -> Rounds:
        """The count for a rule with this take and n functions."""
        return cls(len(take.schedule(n)))

    def exhausted(self, brought: int, asked: int = 1) -> bool:
        """Record a round, and return True if it is the last one.

        Parameters
        ----------
        brought : number of functions that the round added.
        asked : a round with fewer functions is short; 1 if the round ended for another reason than rank.
        """
        self._empty = 0 if brought else self._empty + 1
        self._short += brought < asked
        return self._empty == _EMPTY or self._short > self.planned + _SHORT
