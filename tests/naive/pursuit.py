"""Kernel matching pursuit one pick at a time, everything from its definition (card 4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from naive.dense import Array, Rows, columns_of


@dataclass
class Pursuit:
    """Picks, what is left of y'y before each and after the last, coefficients (one row a column of the dictionary)."""

    picks: list[int] = field(default_factory=list)
    rss: list[float] = field(default_factory=list)
    weakness: list[float] = field(default_factory=list)
    coefficients: Array = field(default_factory=lambda: np.zeros((0, 0)))


def matching_pursuit(
    D: Array,
    Y: ArrayLike,
    steps: Iterable[Rows],
    variant: str,
    *,
    shrinkage: float = 1.0,
    known: Rows | None = None,
    picked: Rows = (),
) -> Pursuit:
    """Each step picks among its own candidates; `known` are those that realised weakness is told against.

    Candidates that depend on the picks (|(I-P)d|^2 <= 1e-10 |d|^2) are left out, but by basic, which repeats.
    """
    Y = columns_of(Y)
    found = Pursuit(list(picked), [], [], np.zeros((D.shape[1], Y.shape[1])))
    if found.picks:
        found.coefficients[found.picks] = np.linalg.lstsq(D[:, found.picks], Y, rcond=1e-15)[0]
    r = Y - D @ found.coefficients
    found.rss.append(float((r**2).sum()))
    for candidates in steps:
        scores = {int(i): _score(D, found.picks, int(i), r, variant) for i in {*candidates, *(known or ())}}
        best = max(candidates, key=lambda i: (scores[int(i)], -list(candidates).index(i)))
        if scores[int(best)] < 0:
            continue
        found.weakness.append(float(np.sqrt(scores[int(best)] / max(scores.values()))))
        found.picks.append(int(best))
        if variant == "basic":
            d = D[:, best]
            found.coefficients[best] += shrinkage * (d @ r) / (d @ d)
        else:
            found.coefficients[:] = 0
            found.coefficients[found.picks] = np.linalg.lstsq(D[:, found.picks], Y, rcond=1e-15)[0]
        r = Y - D @ found.coefficients
        found.rss.append(float((r**2).sum()))
    return found


def _score(D: Array, picks: list[int], i: int, r: Array, variant: str) -> float:
    d = D[:, i]
    if variant == "basic":
        return float(((d @ r) ** 2).sum() / (d @ d))
    J = list(picks)
    left = d - D[:, J] @ np.linalg.lstsq(D[:, J], d, rcond=1e-15)[0] if J else d
    if left @ left <= 1e-10 * (d @ d):
        return -1.0
    return float(((d @ r) ** 2).sum() / (left @ left if variant == "pre-fitting" else d @ d))
