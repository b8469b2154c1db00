"""How many picks are taken before the next look at the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Fixed", "Geometric", "Take"]


class Take(Protocol):
    def count(self, have: int, n: int) -> int:
        """How many functions to add to `have` of `n`, at least one."""


@dataclass(frozen=True)
class Geometric:
    """To n / 2^(rounds - 1), ..., n / 4, n / 2, n functions: few looks, each at a basis worth looking from."""

    rounds: int = 5

    def targets(self, n: int) -> list[int]:
        """Basis sizes at the end of the rounds, ascending, the last being n."""
        return sorted({max(1, -(-n // 2 ** (self.rounds - 1 - j))) for j in range(self.rounds)})

    def count(self, have: int, n: int) -> int:
        return next(target for target in self.targets(n) if target > have) - have


@dataclass(frozen=True)
class Fixed:
    """The same number each time; one for the rules of the papers."""

    picks: int = 1

    def count(self, have: int, n: int) -> int:
        return min(self.picks, n - have)
