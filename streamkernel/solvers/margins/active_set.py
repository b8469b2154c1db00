"""Squared hinges by the active set method (ASVM), one sweep per iteration, with an exact duality gap.

    min_b  1/2 |b|^2 + nu / 2 sum_i w_i (1 - h_i^T b)_+^2        h = t [g, 1],  nu = 2 C
    min_(u >= 0)  1/2 u^T Q u - e^T u        Q = I / nu + H H^T,  b = H^T u

The constant is a feature of its own, and its square is penalised as those of the others are. An iteration takes the
minimum of the dual objective over the face ``u_N = 0``, for which the Woodbury identity needs n + 1 unknowns only::

    (I / nu + H_B^T H_B) b = H_B^T e        u_B = nu (e - H_B b)_+

Rows whose u becomes 0 leave B. Where none does, b is the minimum of the face, and B becomes all rows inside the margin;
if these are the same, b is the solution. The number of iterations is finite (Mangasarian & Musicant 2001; Tresp 2001,
section 3.3.1; ALGORITHMS 8.1).

If the dual objective does not improve, B becomes the rows inside the margin of the best point, and from there on steps
along the directions to the face's minimum are shortened until the primal objective falls: that is Newton's method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from streamkernel.errors import NumericalError, warn_user
from streamkernel.linalg import cholesky, single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.reductions.margins import ActiveSetStep, ActiveSetSums
from streamkernel.reductions.sums import Features
from streamkernel.solvers.margins.margin_solution import MarginIteration, MarginSolution
from streamkernel.type_aliases import Float

ActiveSetSweep = Callable[[ActiveSetStep, str], ActiveSetSums]

_LEAST_LENGTH = 2.0**-30
_DECREASE = 1e-4  # share of the promised decrease of the primal objective that a shortened step must have
_ROUNDING = 1e-14  # of an objective


def face_minimum(gram: Float, labels: Float, nu: float, width: int) -> Float:
    """``(I / nu + H_B^T H_B)^-1 H_B^T e`` (n + 1,), with zeros from position `width` on."""
    system = gram[:width, :width].copy()
    system[np.diag_indices(width)] += 1.0 / nu
    L = cholesky(system, "the system of the active rows", "take a smaller C, or smaller row weights")
    found = np.zeros(len(labels))
    found[:width] = solve_lower_t(L, solve_lower(L, labels[:width]))
    return found


@dataclass
class _Iterations:
    """The points since the active rows were last taken anew, and the best objectives so far."""

    points: list[Float]
    nu: float
    width: int
    tolerance: float
    best: Float = field(init=False)
    primal: float = np.inf
    dual: float = -np.inf
    minimal: bool = False  # whether the last point is the minimum of the face of the rows that were active before it
    careful: bool = False  # whether steps are shortened until the primal objective falls
    direction: Float | None = None
    promised: float = 0.0
    length: float = 1.0
    iterations: list[MarginIteration] = field(default_factory=list)
    converged: bool = False

    def take(self, sums: ActiveSetSums) -> None:
        """Judge the last point, and append the next one unless it is good enough."""
        b, n = self.points[-1], self.width
        pull = sums.pull[:n]
        primal = 0.5 * float(b[:n] @ b[:n]) + sums.loss
        dual = sums.linear - 0.5 * float(pull @ pull) - 0.5 * sums.squares / self.nu
        improved, before = not self.iterations or dual > self.dual + _ROUNDING * abs(self.dual), self.primal
        solved = self.minimal and sums.dropped == 0 and sums.missing == 0
        # Near the end objectives differ by rounding only.
        if solved or primal <= self.primal:
            self.primal, self.best = min(self.primal, primal), b
        self.dual = max(self.dual, dual)
        self.iterations.append(MarginIteration(primal, dual, self.primal - self.dual))
        self.converged = solved or self.primal - self.dual <= self.tolerance * self.primal
        if self.converged:
            return
        if self.careful:
            self._shortened(sums, primal, before)
        elif self.minimal and sums.dropped == 0 and not improved:
            self.careful, self.minimal = True, False
            self.points = [self.best]
        elif sums.dropped and self.minimal:
            self._towards(sums.grams[0], sums.labels[0], self.points)
        else:
            self._towards(sums.grams.sum(axis=0), sums.labels.sum(axis=0), [b])

    def _towards(self, gram: Float, labels: Float, points: list[Float]) -> None:
        self.points = [*points, face_minimum(gram, labels, self.nu, self.width)]
        self.minimal = True

    def _shortened(self, sums: ActiveSetSums, primal: float, before: float) -> None:
        """Take the step, or a shorter one if the primal objective has not fallen."""
        if self.direction is not None and primal > before - _DECREASE * self.length * self.promised:
            # The minimum of the parabola through both objectives with the slope at the start.
            more = primal - before + self.length * self.promised
            self.length *= min(max(0.5 * self.length * self.promised / more, 0.1), 0.5)
            if self.length < _LEAST_LENGTH:
                raise NumericalError("no step towards the minimum of a face lowers the objective; take a smaller C")
            self.points = [self.points[0], self.points[0] + self.length * self.direction]
            self.minimal = False
            return
        b = self.points[-1]
        gram, labels = sums.grams.sum(axis=0), sums.labels.sum(axis=0)
        self._towards(gram, labels, [b])
        self.direction, self.length = self.points[-1] - b, 1.0
        # Minus the slope of the primal objective along the direction.
        n = self.width
        system = self.nu * gram[:n, :n]
        self.promised = float(self.direction[:n] @ (self.direction[:n] + system @ self.direction[:n]))

    @property
    def solution(self) -> MarginSolution:
        return MarginSolution(self.best, self.primal, self.dual, tuple(self.iterations), self.converged)


def solve_active_set(
    sweep: ActiveSetSweep,
    features: Features,
    C: float,
    column: int = 0,
    *,
    start: Float | None = None,
    intercept: bool = True,
    tolerance: float = 1e-6,
    most_sweeps: int = 60,
) -> MarginSolution:
    """Minimise the squared hinge ``C (1 - t f)_+^2`` by the active set method.

    Parameters
    ----------
    sweep : runs a reduction over all rows; each reduction depends on the results of earlier ones only.
    features : Features of n functions; ``Features(None, p)`` for the columns themselves.
    C : cost of a unit of loss, > 0.
    column : column of Y with the indicators of the class.
    start : (n + 1,) coefficients to start from; None starts from 0.
    intercept : False for a constant of 0.
    tolerance : largest relative duality gap; 0 ends with the exact solution.
    most_sweeps : largest number of sweeps; without convergence a warning is issued.

    Raises
    ------
    NumericalError
        The sums are not finite, or no step lowers the objective.
    """
    n = features.width
    begin = np.zeros(n + 1) if start is None else start
    iterations = _Iterations([begin], 2.0 * C, n + int(intercept), tolerance)
    for number in range(1, most_sweeps + 1):
        sums = sweep(ActiveSetStep(features, column, 2.0 * C, np.array(iterations.points)), f"active set {number}")
        with single_threaded_blas():
            iterations.take(sums)
        if iterations.converged:
            break
    solution = iterations.solution
    if not solution.converged:
        warn_user(
            f"the active set method made {most_sweeps} sweeps, and the relative duality gap is "
            f"{solution.relative_gap:.3g}; allow more, or a larger tolerance than {tolerance:g}"
        )
    return solution
