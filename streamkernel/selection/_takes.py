"""Numbers of picks per round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Take(Protocol):
    def count(self, have: int, n: int) -> int:
        """Number of functions to add to the `have` functions of `n`, at least 1."""


@dataclass(frozen=True)
class Geometric:
    """Rounds end at n / 2^(rounds - 1), ..., n / 4, n / 2, n functions: few sweeps, each for a much larger basis."""

    rounds: int = 5

    def targets(self, n: int) -> list[int]:
        """Basis sizes at the ends of the rounds, ascending; the last one is n."""
        return sorted({max(1, -(-n // 2 ** (self.rounds - 1 - j))) for j in range(self.rounds)})

    def count(self, have: int, n: int) -> int:
        return next(target for target in self.targets(n) if target > have) - have


@dataclass(frozen=True)
class Fixed:
    """The same number in each round; 1 in the rules of the papers."""

    picks: int = 1

    def count(self, have: int, n: int) -> int:
        return min(self.picks, n - have)
