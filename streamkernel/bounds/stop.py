"""Where along a path of picks a rule would stop.

::

    trace   first t with  tr R_t <= tol tr K                           (Smola & Schoelkopf 2000, section 5.4)
    bound   the t of the least compression bound, once `patience` more entries have not brought it down
    gap     first t with  bound on (R_t - R_full) <= tol R_t           (the same, eqs. (5) to (7))
    pursuit the k of the least matching pursuit bound, likewise        (Hussain & Shawe-Taylor, Theorems 3 and 4)

A rule reads numbers that the sweeps bring anyway, so that each can be looked up on a finished path (ALGORITHMS 11, 17).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamkernel.bounds._checks import checked_path, checked_sizes
from streamkernel.bounds.compression import compression_bound
from streamkernel.bounds.matching_pursuit import matching_pursuit_bound
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_number

__all__ = ["BoundStop", "GapStop", "PursuitStop", "Stop", "StopRule", "TraceStop", "stop_at"]


@dataclass(frozen=True)
class Stop:
    """Where a rule stops.

    Attributes
    ----------
    size : number of functions to keep.
    looked : number of functions that had been picked when that was known; more than `size` only by patience.
    reached : False where the path ended before the rule was met; `size` is then the last, or the best so far.
    value : at `size`, what the rule compares: tr R_t / tr K, the compression bound, the relative gap, or the matching
        pursuit bound.
    """

    size: int
    looked: int
    reached: bool
    value: float


class StopRule(Protocol):
    def find(self, path: NDArray[np.float64], sizes: NDArray[np.int64]) -> Stop:
        """Where to stop on this path."""


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

    def find(self, path: NDArray[np.float64], sizes: NDArray[np.int64]) -> Stop:
        trace = checked_number("trace", self.trace)
        return _first_within(path / trace, sizes, checked_number("tol", self.tol, zero=True))


@dataclass(frozen=True)
class BoundStop:
    """Stop at the least compression bound so far when `patience` entries have not improved on it.

    Parameters
    ----------
    rows, delta, largest : as for `compression_bound`; the path holds residual traces.
    patience : entries without a new minimum before the rule gives up; None to look at the whole path.
    """

    rows: int
    delta: float = 0.05
    largest: float = 1.0
    patience: int | None = 10

    def find(self, path: NDArray[np.float64], sizes: NDArray[np.int64]) -> Stop:
        values = compression_bound(path, self.rows, self.delta, self.largest, sizes=sizes).values
        return _least(values, sizes, self.patience)


@dataclass(frozen=True)
class PursuitStop:
    """Stop at the least matching pursuit bound so far when `patience` entries have not improved on it.

    A relative rule: the bound is mostly vacuous (`Stop.value` of 1 or more), and its minimum is where the price of one
    more function exceeds that of the wrong rows it mends (Hussain & Shawe-Taylor, section 3.1).

    Parameters
    ----------
    rows, delta, gammas, views : as for `matching_pursuit_bound`; the path holds the counts q of wrong rows outside the
        basis.
    patience : entries without a new minimum before the rule gives up; None to look at the whole path.
    """

    rows: int
    delta: float = 0.05
    gammas: int = 1
    views: int = 1
    patience: int | None = 10

    def find(self, path: NDArray[np.float64], sizes: NDArray[np.int64]) -> Stop:
        errors = path.astype(np.int64)
        if np.any(errors != path):
            raise ParameterError("the path holds numbers that are not whole; give counts of wrong rows")
        found = matching_pursuit_bound(self.rows, sizes, errors, self.delta, gammas=self.gammas, views=self.views)
        return _least(found.values, sizes, self.patience)


@dataclass(frozen=True)
class GapStop:
    """Stop when a full fit could gain no more than `tol` of the risk; the path holds `DualGap.relative`."""

    tol: float = 1e-2

    def find(self, path: NDArray[np.float64], sizes: NDArray[np.int64]) -> Stop:
        return _first_within(path, sizes, checked_number("tol", self.tol, zero=True))


def stop_at(path: ArrayLike, rule: StopRule, *, sizes: ArrayLike | None = None) -> Stop:
    """Where `rule` would have stopped on a path of picks.

    Parameters
    ----------
    path : (n,) what the rule reads, one entry after each pick or round.
    rule : `TraceStop`, `BoundStop`, `GapStop` or `PursuitStop`.
    sizes : (n,) number of functions at each entry, ascending; 1 .. n by default.

    Raises
    ------
    ParameterError
        The path has negative or infinite entries, or sizes do not fit it.
    """
    numbers = checked_path("path", path)
    return rule.find(numbers, checked_sizes(sizes, len(numbers)))


def _least(values: NDArray[np.float64], sizes: NDArray[np.int64], patience: int | None) -> Stop:
    """At the least value so far, once `patience` more entries have not brought it down."""
    enough = len(values) if patience is None else checked_integer("patience", patience)
    best = 0
    for at, value in enumerate(values):
        if value < values[best]:
            best = at
        elif at - best >= enough:
            return Stop(int(sizes[best]), int(sizes[at]), True, float(values[best]))
    # Past a minimum in the interior the whole path has been looked at; at its end nobody knows.
    whole = patience is None and best < len(values) - 1
    return Stop(int(sizes[best]), int(sizes[-1]), whole, float(values[best]))


def _first_within(values: NDArray[np.float64], sizes: NDArray[np.int64], tol: float) -> Stop:
    within = np.flatnonzero(values <= tol)
    at = int(within[0]) if len(within) else len(values) - 1
    return Stop(int(sizes[at]), int(sizes[at]), bool(len(within)), float(values[at]))
