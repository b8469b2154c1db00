"""Numbers of picks per round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


class Take(ABC):
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
