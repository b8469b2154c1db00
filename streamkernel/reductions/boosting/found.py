"""What one sweep of boosting finds: errors, the rows that were drawn for the next member, and histograms of margins."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from streamkernel.type_aliases import AnyArray, Float, Int

MARGIN_BINS = 100
BINS = 400  # of values of the vote, as `scores.margins` has them


def mass_unit(weight: float) -> float:
    """u: a power of two with which row weights that sum to `weight` sum to more than 1/2 and at most 1."""
    return math.ldexp(1.0, -math.frexp(weight)[1])


def margin_edges() -> Float:
    """Ends of the bins of margins, (MARGIN_BINS + 1,)."""
    return np.linspace(-1.0, 1.0, MARGIN_BINS + 1)


@dataclass(frozen=True)
class Drawn:
    """Rows of one reservoir, ascending, and how much each counts.

    Attributes
    ----------
    rows : (s,) row numbers; X : (s, p); labels : (s,) class codes.
    importance : (s,) D over the probability of the row.
    """

    rows: Int
    X: AnyArray
    labels: Int
    importance: Float


@dataclass(frozen=True)
class DrawnMember:
    """The rows that a member is fitted to, ascending, their class codes and weights."""

    rows: Int
    X: AnyArray
    labels: Int
    weights: Float

    @classmethod
    def of(cls, parts: tuple[Drawn, ...], sizes: tuple[float, ...]) -> DrawnMember:
        """The reservoirs together; the weights of each sum to its size."""
        kept = [(part, size) for part, size in zip(parts, sizes, strict=True) if len(part.rows)]
        weights = np.concatenate([part.importance * (size / part.importance.sum()) for part, size in kept])
        rows = np.concatenate([part.rows for part, _ in kept])
        order = np.argsort(rows)
        X, labels = (np.concatenate([getattr(part, name) for part, _ in kept])[order] for name in ("X", "labels"))
        return cls(rows[order], X, labels, weights[order])


@dataclass(frozen=True)
class Boosted:
    """The result of a sweep.

    Attributes
    ----------
    error : share of D that the newest member gets wrong; NaN without one.
    weight : sums of w over rows that are trained on, and over held-out ones.
    rows : (2,) their numbers, of weight > 0.
    trace : sum of w k(x, x) over all rows.
    vote_errors, member_errors : (2,) shares of these weights that the vote and the newest member get wrong; NaN where
        there are no such rows, or nothing to count.
    parts : the reservoirs.
    margins : (h, 2, MARGIN_BINS) shares of the rows by the margin of a vote.
    values : (h, K, 2, BINS) where asked for, weight of held-out rows by the value of a vote, those outside the class
        first.
    """

    error: float
    weight: tuple[float, float]
    rows: tuple[int, int]
    trace: float
    vote_errors: tuple[float, float]
    member_errors: tuple[float, float]
    parts: tuple[Drawn, ...]
    margins: Float
    values: Float
