"""Rounds of a rule: the picks of each, and the end when the rank is exhausted, so that no data need many rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


class Take(ABC):
    """Numbers of picks per round."""

    @abstractmethod
    def count(self, have: int, n: int) -> int:
        """Number of functions to add to the `have` functions of `n`, at least 1."""

    def schedule(self, n: int) -> list[tuple[int, int]]:
        """The rounds to n functions: for each the number of functions before it, and of its picks."""
        found, have = [], 0
        while have < n:
            found.append((have, self.count(have, n)))
            have += found[-1][1]
        return found


@dataclass(frozen=True)
class Geometric(Take):
    """Rounds end at n / 2^(rounds - 1), ..., n / 4, n / 2, n functions: few sweeps, each for a much larger basis."""

    rounds: int = 5

    def targets(self, n: int) -> list[int]:
        """Basis sizes at the ends of the rounds, ascending; the last one is n."""
        return sorted({max(1, -(-n // 2 ** (self.rounds - 1 - j))) for j in range(self.rounds)})

    def count(self, have: int, n: int) -> int:
        return next(target for target in self.targets(n) if target > have) - have


@dataclass(frozen=True)
class Fixed(Take):
    """The same number in each round; 1 in the rules of the papers."""

    picks: int = 1

    def count(self, have: int, n: int) -> int:
        return min(self.picks, n - have)


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

    def exhausted(self, added: int, requested: int = 1) -> bool:
        """Record a round, and return True if it is the last one.

        Parameters
        ----------
        added : number of functions that the round added.
        requested : a round with fewer functions is short; 1 if the round ended for another reason than rank.
        """
        self._empty = 0 if added else self._empty + 1
        self._short += added < requested
        return self._empty == _EMPTY or self._short > self.planned + _SHORT
