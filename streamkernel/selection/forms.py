"""The two forms of the sums of a pool: the Gram matrix, and its root, which costs twice and loses no digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from streamkernel.reductions import Reduction
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.pools import PoolColumns, PoolGram, PoolRoot, PoolSums, RootSums
from streamkernel.selection._picks import Picks, lazy_picks
from streamkernel.selection._root_picks import root_picks
from streamkernel.selection.scores import Score
from streamkernel.type_aliases import Unchecked

_DIGITS = 1e-6  # share of its first value that a sum of squares still resolves (ALGORITHMS 1.3, remedy 1)


class Form(Protocol):
    def reduction(self, columns: PoolColumns) -> AnyReduction:
        """The reduction of a sweep over the scoring rows."""

    def picks(self, sums: Any, score: Score, count: int, **limits: Unchecked) -> Picks:
        """Picks from the sums; `limits` are parameters of `lazy_picks`."""


@dataclass(frozen=True)
class GramForm:
    """``[G, R, Y]^T [G, R, Y]``. If sums of a candidate fall to a share of 1e-6, all are computed again."""

    def reduction(self, columns: PoolColumns) -> Reduction[PoolSums]:
        return PoolGram(columns)

    def picks(self, sums: PoolSums, score: Score, count: int, **limits: Unchecked) -> Picks:
        return lazy_picks(sums, score, count, digits=_DIGITS, **limits)


@dataclass(frozen=True)
class RootForm:
    """The triangular factor of ``[G, R, Y]``; for least squares projections (rho = 0) only."""

    def reduction(self, columns: PoolColumns) -> Reduction[RootSums]:
        return PoolRoot(columns)

    def picks(self, sums: RootSums, score: Score, count: int, **limits: Unchecked) -> Picks:
        return root_picks(sums, score, count, **limits)
