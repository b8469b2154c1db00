"""The solution of a large margin problem, with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamkernel.errors import warn_user
from streamkernel.type_aliases import Float
from streamkernel.wording import option


@dataclass(frozen=True)
class MarginIteration:
    """Objectives after one sweep: primal and dual at the present variables, and the gap of the best ones so far."""

    primal: float
    dual: float
    gap: float


class MarginStart(NamedTuple):
    """Where to start a problem: near the solution of another C, or of a sample of the rows.

    Attributes
    ----------
    coefficients : (n + 1,), the last is the constant.
    barrier : barrier of an interior point method; Newton's method has none.
    """

    coefficients: Float
    barrier: float = 0.0

    def widened(self, n: int) -> MarginStart:
        """The start for n functions, of which the first are those of this one: the others begin at 0."""
        b = self.coefficients
        return MarginStart(np.concatenate([b[:-1], np.zeros(n + 1 - len(b)), b[-1:]]), self.barrier)


class Certified:
    """Base of solutions with a lower bound of their objective.

    Attributes
    ----------
    primal, dual : objective, and its bound.
    iterations : one record for each sweep.
    converged : whether the gap, or what the solver was to reach, is within its tolerance.
    """

    primal: float
    dual: float
    iterations: tuple[MarginIteration, ...]
    converged: bool

    @property
    def gap(self) -> float:
        """``primal - dual``: the objective is at most this far from the minimum."""
        return self.primal - self.dual

    @property
    def relative_gaps(self) -> Float:
        """(s,) gap after each sweep as a share of the last primal objective."""
        return np.array([each.gap for each in self.iterations]) / self._size

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the primal objective, whose sign does not count."""
        return self.gap / self._size

    @property
    def _size(self) -> float:
        """What gaps are compared with: the primal objective; the dual one where no coefficients are better than 0."""
        return abs(self.primal) or abs(self.dual) or 1.0


@dataclass(frozen=True)
class MarginSolution(Certified):
    """The solution of one problem; the gaps are those of the best objectives so far.

    Attributes
    ----------
    coefficients : (n + 1,) b with the least primal objective; the last is the constant.
    primal, dual : the least primal and the largest dual objective.
    iterations : one record for each sweep.
    converged : whether the gap is within the tolerance.
    """

    coefficients: Float
    primal: float
    dual: float
    iterations: tuple[MarginIteration, ...]
    converged: bool

    @property
    def start(self) -> MarginStart:
        """Where to start another problem near this one."""
        return MarginStart(self.coefficients)


def warn_of_gap(solutions: Sequence[Certified], tolerance: float, easier: str) -> None:
    """Warn of the largest gap where a solution is not within the tolerance; `easier` names a problem of less work."""
    if all(solution.converged for solution in solutions):
        return
    worst = max(solutions, key=lambda each: each.relative_gap)
    warn_user(
        f"the solution is within {worst.relative_gap:.3g} of the least objective after {len(worst.iterations)} sweeps, "
        f"not within {tolerance:g}; allow more sweeps ({option('max_sweeps')}), a larger gap ({option('gap_tol')}) or "
        f"give {easier}"
    )
