"""Stopping rules: the size at which a rule stops along a path of picks.

::

    trace   first t with  tr R_t <= tol tr K                           (Smola & Schoelkopf 2000, section 5.4)
    bound   the t with the least compression bound, once `patience` more entries have not lowered it
    gap     first t with  bound on (R_t - R_full) <= tol R_t           (the same, eqs. (5) to (7))
    pursuit the k with the least matching pursuit bound, likewise      (Hussain & Shawe-Taylor, Theorems 3 and 4)

A rule reads numbers that the sweeps return anyway, so each can be applied to a finished path (ALGORITHMS 11, 17).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.bounds._checks import checked_path, checked_sizes
from streamkernel.bounds.compression import compression_bound
from streamkernel.bounds.matching_pursuit import matching_pursuit_bound
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_number
from streamkernel.type_aliases import Float, Int


@dataclass(frozen=True)
class Stop:
    """The result of a rule.

    Attributes
    ----------
    size : number of functions to keep.
    looked : number of functions that were picked when the rule decided; it exceeds `size` by patience only.
    reached : False if the path ended before the rule was met; `size` is then the last, or the best so far.
    value : the rule's criterion at `size`: tr R_t / tr K, the compression bound, the relative gap, or the matching
        pursuit bound.
    """

    size: int
    looked: int
    reached: bool
    value: float


class StopRule(Protocol):
    """A rule that reads a path of numbers, one for each basis size."""

    def find(self, path: Float, sizes: Int) -> Stop:
        """The stop on this path."""


@dataclass(frozen=True)
class TraceStop:
    """Stop at the first ``tr R_t <= tol tr K``; the path holds residual traces.

    Parameters
    ----------
    trace : tr K.
    tol : relative tolerance.
    """

    trace: float
    tol: float = 1e-3

    def find(self, path: Float, sizes: Int) -> Stop:
        trace = checked_number("trace", self.trace)
        return _first_within(path / trace, sizes, checked_number("tol", self.tol, zero=True))


@dataclass(frozen=True)
class BoundStop:
    """Stop at the least compression bound so far, when `patience` entries have not improved on it.

    Parameters
    ----------
    rows, delta, largest : as in `compression_bound`; the path holds residual traces.
    patience : number of entries without a new minimum before the rule stops; None to use the whole path.
    """

    rows: int
    delta: float = 0.05
    largest: float = 1.0
    patience: int | None = 10

    def find(self, path: Float, sizes: Int) -> Stop:
        values = compression_bound(path, self.rows, self.delta, self.largest, sizes=sizes).values
        return _least(values, sizes, self.patience)


@dataclass(frozen=True)
class PursuitStop:
    """Stop at the least matching pursuit bound so far, when `patience` entries have not improved on it.

    A relative rule: the bound is mostly vacuous (`Stop.value` is 1 or more). At its minimum, the cost of one more
    function begins to exceed the gain from the wrong rows that it corrects (Hussain & Shawe-Taylor, section 3.1).

    Parameters
    ----------
    rows, delta, gammas, views : as in `matching_pursuit_bound`; the path holds the counts q of wrong rows outside the
        basis.
    patience : number of entries without a new minimum before the rule stops; None to use the whole path.
    """

    rows: int
    delta: float = 0.05
    gammas: int = 1
    views: int = 1
    patience: int | None = 10

    def find(self, path: Float, sizes: Int) -> Stop:
        errors = path.astype(np.int64)
        if np.any(errors != path):
            raise ParameterError("the path holds numbers that are not whole; give counts of wrong rows")
        found = matching_pursuit_bound(self.rows, sizes, errors, self.delta, gammas=self.gammas, views=self.views)
        return _least(found.values, sizes, self.patience)


@dataclass(frozen=True)
class GapStop:
    """Stop when a full fit could lower the risk by at most `tol` of it; the path holds `DualGap.relative`."""

    tol: float = 1e-2

    def find(self, path: Float, sizes: Int) -> Stop:
        return _first_within(path, sizes, checked_number("tol", self.tol, zero=True))


def stop_at(path: ArrayLike, rule: StopRule, *, sizes: ArrayLike | None = None) -> Stop:
    """The stop of `rule` on a path of picks.

    Parameters
    ----------
    path : (n,) criterion that the rule reads, one entry after each pick or round.
    rule : `TraceStop`, `BoundStop`, `GapStop` or `PursuitStop`.
    sizes : (n,) number of functions at each entry, ascending; 1 .. n by default.

    Raises
    ------
    ParameterError
        The path has negative or infinite entries, or sizes do not fit it.
    """
    numbers = checked_path("path", path)
    return rule.find(numbers, checked_sizes(sizes, len(numbers)))


def _least(values: Float, sizes: Int, patience: int | None) -> Stop:
    """Stop at the least value so far, once `patience` more entries have not lowered it."""
    enough = len(values) if patience is None else checked_integer("patience", patience)
    best = 0
    for at, value in enumerate(values):
        if value < values[best]:
            best = at
        elif at - best >= enough:
            return Stop(int(sizes[best]), int(sizes[at]), True, float(values[best]))
    # With the whole path known, a minimum before its end is certain; one at its end may not be the last.
    whole = patience is None and best < len(values) - 1
    return Stop(int(sizes[best]), int(sizes[-1]), whole, float(values[best]))


def _first_within(values: Float, sizes: Int, tol: float) -> Stop:
    within = np.flatnonzero(values <= tol)
    at = int(within[0]) if len(within) else len(values) - 1
    return Stop(int(sizes[at]), int(sizes[at]), bool(len(within)), float(values[at]))
