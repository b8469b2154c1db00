"""Smooth large margin losses by Newton's method, one sweep per iteration, with an exact duality gap.

    P(b) = 1/2 |b|^2 + sum_i w_i loss(y_i, g_i^T b)

The constant is a feature of its own, and its square is penalised as those of the others are. P is strongly convex, so
that its gradient at b bounds how far b is from the minimum; this is the duality gap at ``u = -slope``::

    P(b) - min P <= 1/2 |gradient|^2

The Hessian ``I + sum w curvature g g^T`` of a squared hinge is that of the rows inside the margin: on these the method
is a finite one, and the step that finds them all is the last (ALGORITHMS 8.3; the same faces as those of ASVM).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamkernel.errors import NumericalError
from streamkernel.linalg import cholesky, single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.reductions.margins import Line, Smooth, SmoothStep, SmoothSums, StepSums, Target
from streamkernel.reductions.sums import Features
from streamkernel.solvers.latent_coordinates import STEPS, accepted
from streamkernel.solvers.margin_solution import MarginIteration, MarginSolution, MarginStart
from streamkernel.type_aliases import Float

SmoothSweep = Callable[[SmoothStep, str], StepSums[SmoothSums]]


@dataclass
class _Problem:
    """One problem: its best coefficients, and the step that the next sweep takes."""

    line: Line
    width: int
    tolerance: float
    objective: float = np.inf
    promised: float = 0.0
    iterations: list[MarginIteration] = field(default_factory=list)
    converged: bool = False

    def take(self, sums: SmoothSums) -> None:
        """Accept the full step, or go on from a shorter one."""
        start, end = self.line.start, self.line.end
        objectives = sums.losses + [self._penalty(start + length * (end - start)) for length in STEPS]
        taken = 0 if np.isinf(self.objective) else accepted(objectives, self.objective, self.promised)
        if taken != 0:
            # The derivatives are those of the full step: the next sweep sums them where the shorter one ends.
            if taken < 0:
                raise NumericalError("no step along the Newton direction lowers the objective; look at the targets")
            point = start + STEPS[taken] * (end - start)
            self.line, self.objective = Line(point, point), np.inf
            return
        self.objective = float(objectives[0])
        n = self.width
        gradient = end[:n] + sums.gradient[:n]
        gap = 0.5 * float(gradient @ gradient)
        self.iterations.append(MarginIteration(self.objective, self.objective - gap, gap))
        self.line = Line(end, end)
        self.converged = gap <= self.tolerance * self.objective
        if self.converged:
            return
        system = sums.curvature[:n, :n].copy()
        system[np.diag_indices(n)] += 1.0
        L = cholesky(system, "the Hessian of the losses", "take a smaller C")
        direction = -solve_lower_t(L, solve_lower(L, gradient))
        self.promised = -float(gradient @ direction)
        further = end.copy()
        further[:n] += direction
        self.line = Line(end, further)

    def _penalty(self, b: Float) -> float:
        return 0.5 * float(b @ b)

    @property
    def solution(self) -> MarginSolution:
        last = self.iterations[-1]
        return MarginSolution(self.line.start, last.primal, last.dual, tuple(self.iterations), self.converged)


def solve_smooth_margins(
    sweep: SmoothSweep,
    features: Features,
    losses: Sequence[Smooth],
    targets: Sequence[Target],
    *,
    starts: Sequence[MarginStart] | None = None,
    intercept: bool = True,
    tolerance: float = 1e-6,
    most_sweeps: int = 60,
) -> tuple[MarginSolution, ...]:
    """Minimise K problems on the same features, all in the same sweeps until each is solved.

    Parameters
    ----------
    sweep : runs a reduction over all rows; each reduction depends on the results of earlier ones only.
    features : Features of n functions.
    losses, targets : loss and target of each problem.
    starts : `MarginSolution.start` of other solutions; None starts from 0.
    intercept : False for a constant of 0.
    tolerance : largest relative duality gap.
    most_sweeps : largest number of sweeps; `warn_of_gap` tells of solutions that need more.

    Raises
    ------
    NumericalError
        The sums are not finite, or no step lowers an objective.
    """
    n = features.width
    begin = [np.zeros(n + 1) for _ in losses] if starts is None else [start.coefficients for start in starts]
    problems = [_Problem(Line(b, b), n + int(intercept), tolerance) for b in begin]
    for number in range(1, most_sweeps + 1):
        open_ = [k for k, problem in enumerate(problems) if not problem.converged]
        if not open_:
            break
        step = SmoothStep(
            features,
            tuple(losses[k] for k in open_),
            tuple(targets[k] for k in open_),
            tuple(problems[k].line for k in open_),
            STEPS,
        )
        swept = sweep(step, f"newton {number}")
        with single_threaded_blas():
            for k, sums in zip(open_, swept.problems, strict=True):
                problems[k].take(sums)
    return tuple(problem.solution for problem in problems)
