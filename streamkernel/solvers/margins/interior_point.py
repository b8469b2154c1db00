"""Piecewise linear losses by an interior point method, one sweep per iteration, with an exact duality gap.

    min_b  1/2 b^T D b + c b_n + sum_i w_i loss(y_i, g_i^T b)

The constant b_n is a feature of its own. Its square is penalised as those of the others are (D = I; Tresp 2001, section
3.3) or is not (its place in D is 0); its slope c is 0 for all losses but that of one class.

Every sweep gives the primal objective at b and the dual objective at variables in their boxes; the gap between the
least and the largest of them so far bounds how far the solution is from the minimum (`reductions.margins`).

Targets and C are in units of order 1: the first barrier is C, for a residual of 1. One class starts where its dual
variables sum to 1 as they must, each the share of its row: from f = 1 with the barrier ``1 / sum w``. From the middle
of their boxes they would have to fall by the factor nu / 2: for nu = 1e-5, 20,000 rows, 100 sweeps did not do.

Smola & Schoelkopf 2000, section 6.1, has two to three sweeps per iteration and variables for each row; here there is
one sweep, and none. On spambase, a9a and covtype (two classes, n = 300, C = 1 to 100) the gap is below 1e-3 after 9 to
18 sweeps and below 1e-6 after 12 to 23 (ALGORITHMS 22 has 20 to 40 iterations of two to three sweeps). A constant that
is not penalised takes up to 3 more, or fewer. One class (covtype, a9a, spambase, pendigits; n = 300) is within 1e-3
after 13 to 17 sweeps for nu = 0.01, 10 to 13 for 0.1 and 8 to 10 for 0.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamkernel.errors import NumericalError
from streamkernel.linalg import single_threaded_blas, solve_shifted
from streamkernel.linalg.finite import require_finite
from streamkernel.reductions.margins import (
    InteriorPath,
    InteriorPointStep,
    InteriorPointSums,
    PiecewiseLinear,
    StepSums,
    Target,
)
from streamkernel.reductions.sums import Features
from streamkernel.solvers.margins.margin_solution import MarginIteration, MarginSolution, MarginStart
from streamkernel.type_aliases import Float

# Share of the present barrier that a step aims at: it begins in the middle, falls while the barrier follows, and rises
# where it does not. Other first shares and factors cost a sweep or two (spambase, a9a, covtype).
_FIRST_SHARE, _LEAST_SHARE, _LARGEST_SHARE = 0.2, 0.05, 0.8
_FALL, _RISE = 0.6, 1.6
# Where the primal objective rises and the gap does not fall, full steps may go round in a circle: steps become shorter.
_LEAST_LENGTH, _SHORTER, _LONGER = 0.125, 0.5, 1.2
_STALLED = 0.9  # of the gap before
# Sweeps to a gap of 1e-6 from a sample of 8,000 rows with 0.1, 0.3, 1: 27, 23, 23 (a9a, C = 100), 19, 17, 21 (covtype,
# C = 100); to 1e-3 of 600,000 rows, which the sample knows less of: 17, 10, 11.
_START_GAP = 0.3
# Share of C below which a start has no barrier: the objective there is 0, and that of other rows may not be.
_LEAST_BARRIER = 1e-12
# Least objective to which a gap is compared, as a share of C for each row: a tube around all rows has the minimum 0.
_NOTHING = 1e-15
MarginSweep = Callable[[InteriorPointStep, str], StepSums[InteriorPointSums]]


@dataclass(frozen=True)
class InteriorSolution(MarginSolution):
    """The solution of one problem.

    Attributes
    ----------
    weight : sum of the row weights, over all kinks.
    """

    weight: float

    @property
    def start(self) -> MarginStart:
        """As in the base class.

        The barrier is that of a gap of about a third of the objective. With the barrier of the last sweep, most rows
        would begin at an end of their box, and a problem of another C took more sweeps than from 0.
        """
        barrier = _START_GAP * abs(self.primal) / (2.0 * self.weight) if self.weight > 0.0 else 0.0
        return MarginStart(self.coefficients, barrier)


def repaired_dual(sums: InteriorPointSums, slope: float) -> float:
    """Dual objective of variables that obey ``sum w u = c``, for a constant of slope c that is not penalised.

    The variables u of a sweep miss that by a little. On the way to the ends of all their boxes, the low ones l where
    the sum is too large and the high ones where it is too small, there are variables that obey it exactly::

        u' = u + t (l - u)        t = (sum w u - c) / (sum w u - sum w l)

    They are in their boxes as u is. Where c is not between ``sum w l`` and ``sum w (l + C)``, the primal objective has
    no minimum.
    """
    excess = sums.dual[-1] - slope
    end, linear = (sums.low, sums.low_linear) if excess > 0.0 else (sums.high, sums.high_linear)
    t = min(excess / (sums.dual[-1] - end[-1]), 1.0) if excess else 0.0
    pull = sums.dual[:-1] + t * (end[:-1] - sums.dual[:-1])
    return float(sums.linear + t * (linear - sums.linear) - 0.5 * pull @ pull)


@dataclass
class _Problem:
    """One problem, its path so far, and the best objectives of it; `penalty` is D for the coefficients that it has.

    Where the constant has no slope, u = 0 is in all boxes and bounds the objective by 0.
    """

    path: InteriorPath
    penalty: Float
    loss: PiecewiseLinear
    tolerance: float
    best: Float = field(init=False)
    primal: float = np.inf
    dual: float = -np.inf
    share: float = _FIRST_SHARE
    length: float = 1.0
    barrier: float = np.inf
    weight: float = 0.0
    iterations: list[MarginIteration] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.loss.constant_slope == 0.0:
            self.dual = 0.0

    @property
    def converged(self) -> bool:
        least = _NOTHING * self.loss.C * self.weight
        return self.primal - self.dual <= max(self.tolerance * abs(self.primal), least) < np.inf

    def take(self, sums: InteriorPointSums) -> None:
        """Judge the present variables, and append the next step to the path unless they are good enough."""
        self.weight = sums.weight
        b, slope = self.path.coefficients, self.loss.constant_slope
        pull = sums.dual - slope * np.eye(1, len(b), len(b) - 1)[0]
        kept, pull = b[: len(self.penalty)], pull[: len(self.penalty)]
        primal = 0.5 * float(self.penalty @ kept**2) + slope * float(b[-1]) + sums.loss
        dual = sums.linear - 0.5 * float(pull @ pull) if self.penalty[-1] else repaired_dual(sums, slope)
        if primal < self.primal:
            self.primal, self.best = primal, self.path.coefficients
        self.dual = max(self.dual, dual)
        now = MarginIteration(primal, dual, self.primal - self.dual)
        if self.iterations:
            before = self.iterations[-1]
            circles = primal > before.primal and now.gap > _STALLED * before.gap
            self.length = max(_LEAST_LENGTH, _SHORTER * self.length) if circles else min(1.0, _LONGER * self.length)
        self.iterations.append(now)
        if np.isfinite(self.barrier):
            followed = sums.mean_barrier <= (1.5 * self.share + 0.05) * self.barrier
            wanted = self.share * (_FALL if followed else _RISE)
            self.share = min(max(wanted, _LEAST_SHARE), _LARGEST_SHARE)
        self.barrier = sums.mean_barrier
        if not self.converged:
            self.path = self.path.further(*self._step(sums, pull - self.penalty * kept), self.length)

    def _step(self, sums: InteriorPointSums, missing: Float) -> tuple[Float, float]:
        """The next step and the barrier that it aims at; `missing` is ``sum w u g - D b - c``."""
        n = len(self.penalty)
        aim = self.share * self.barrier
        system = sums.gram[:n, :n].copy()
        system[np.diag_indices(n)] += self.penalty
        require_finite(system, "the system of an interior point step")
        step = np.zeros(len(sums.dual))
        step[:n] = _solved(system, missing + sums.rest[:n] + aim * sums.barrier[:n])
        return step, aim

    @property
    def solution(self) -> InteriorSolution:
        return InteriorSolution(self.best, self.primal, self.dual, tuple(self.iterations), self.converged, self.weight)


def _solved(system: Float, right: Float) -> Float:
    """The solution of a system of a positive definite matrix."""
    # Rows on the kink have weights up to 1 / mu: the matrix may not be positive definite to working precision. More on
    # its diagonal shortens the step, and the next sums tell what is missing.
    largest = float(np.diagonal(system).max())
    for lift in (0.0, 1e-14, 1e-12, 1e-10):
        found = solve_shifted(system, lift * largest, right)
        if found is not None:
            return found
    raise NumericalError(
        "the system of an interior point step is not positive definite to working precision; take a smaller C, a "
        "shorter lengthscale or fewer basis functions"
    )


def solve_margins(
    sweep: MarginSweep,
    features: Features,
    losses: Sequence[PiecewiseLinear],
    targets: Sequence[Target | None],
    *,
    starts: Sequence[MarginStart] | None = None,
    intercept: bool = True,
    penalised_constant: bool = True,
    tolerance: float = 1e-4,
    most_sweeps: int = 60,
    weight: float = 1.0,
) -> tuple[InteriorSolution, ...]:
    """Minimise K problems on the same features, all in the same sweeps until each is solved.

    Parameters
    ----------
    sweep : runs a reduction over all rows; each reduction depends on the results of earlier ones only.
    features : Features of n functions.
    losses, targets : loss and target of each problem; None for a loss of f alone.
    starts : `MarginSolution.start` of other solutions; None starts from 0.
    intercept : False for a constant of 0.
    penalised_constant : False to leave the square of the constant out of the objective, as one class has it.
    tolerance : largest relative duality gap.
    most_sweeps : largest number of sweeps; `warn_of_gap` tells of solutions that need more.
    weight : sum of the row weights, of about the right size; where one class starts depends on it.

    Raises
    ------
    NumericalError
        The sums are not finite, or a system is not positive definite.
    """
    n = features.width
    penalty = np.append(np.ones(n), np.full(int(intercept), float(penalised_constant)))
    if starts is None:
        starts = [MarginStart(loss.constant_slope * np.eye(n + 1)[-1]) for loss in losses]
    problems = []
    for loss, start in zip(losses, starts, strict=True):
        first = min(loss.C, 1.0 / weight) if loss.constant_slope else loss.C
        barrier = start.barrier if start.barrier > _LEAST_BARRIER * first else first
        problems.append(_Problem(InteriorPath.begin(start.coefficients, barrier), penalty, loss, tolerance))
    for number in range(1, most_sweeps + 1):
        open_ = [k for k, problem in enumerate(problems) if not problem.converged]
        if not open_:
            break
        step = InteriorPointStep(
            features,
            tuple(losses[k] for k in open_),
            tuple(targets[k] for k in open_),
            tuple(problems[k].path for k in open_),
        )
        swept = sweep(step, f"interior point {number}")
        with single_threaded_blas():
            for k, sums in zip(open_, swept.problems, strict=True):
                problems[k].take(sums)
    return tuple(problem.solution for problem in problems)
