"""When a rule that goes on in rounds takes the rank as exhausted: after a bounded number, whatever the data."""

from __future__ import annotations

from dataclasses import dataclass

from streamkernel.selection.takes import Take

__all__ = ["Rounds"]

_EMPTY = 3  # rounds in a row that brought nothing
_SHORT = 10  # rounds that brought less than was asked of them, beyond as many as were planned


@dataclass
class Rounds:
    """Rounds so far that brought less than was asked of them, as draws from few distinct rows do.

    Each of them reads rows, and one that brings a single function is hardly worth it: a plan of few sweeps is to end
    after few. So the rule ends after 3 empty rounds in a row, and once there are 10 short ones more than the rounds
    that were planned.

    Parameters
    ----------
    planned : rounds that lead to n functions where each brings what is asked of it.
    """

    planned: int
    _empty: int = 0
    _short: int = 0

    @classmethod
    def of(cls, take: Take, n: int) -> Rounds:
        """Of a rule that takes so many functions a round."""
        have = planned = 0
        while have < n:
            have, planned = have + take.count(have, n), planned + 1
        return cls(planned)

    def exhausted(self, brought: int, asked: int = 1) -> bool:
        """Whether the round that brought so many functions was the last.

        Parameters
        ----------
        asked : fewer than these are short of what was asked; 1 where something else than rank ended the round.
        """
        self._empty = 0 if brought else self._empty + 1
        self._short += brought < asked
        return self._empty == _EMPTY or self._short > self.planned + _SHORT
