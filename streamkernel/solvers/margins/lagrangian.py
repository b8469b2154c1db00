"""Squared hinges by the Lagrangian method (LSVM), one sweep per iteration, with an exact duality gap.

    min_b  1/2 |b|^2 + nu / 2 sum_i w_i (1 - h_i^T b)_+^2        h = t [g, 1],  nu = 2 C
    u <- Q^-1 (e + (Q u - e - beta u)_+)        Q = I / nu + H H^T,  0 < beta < 2 / nu

The constant is a feature of its own, and its square is penalised as those of the others are. One matrix of n + 1 is
factored before the iterations, each of which then takes O(n) operations a row (Mangasarian & Musicant 2001; Tresp 2001,
section 3.3.2; ALGORITHMS 8.2). Convergence is linear, with thousands of iterations where C is large: Newton's method
(`smooth_margins`) and the active set method (`active_set`) need a handful.

With ``beta = 1 / nu``, the default, a row needs no state, and the iteration is a ridge regression on ``max(1, t f)``::

    b <- (I / nu + H^T H)^-1 H^T max(1, H b)

With beta = 1.9 / nu there are about half as many iterations, and a sweep computes the last 342 of them again
(`reductions.margins.lagrangian`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from streamkernel.errors import ParameterError, warn_user
from streamkernel.linalg import cholesky, single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.reductions.margins import ActiveSetStep, ActiveSetSums, LagrangianStep, LagrangianSums
from streamkernel.reductions.sums import Features
from streamkernel.solvers.margins.margin_solution import MarginIteration, MarginSolution

AnyLagrangianStep: TypeAlias = ActiveSetStep | LagrangianStep
LagrangianSweep = Callable[[AnyLagrangianStep, str], ActiveSetSums | LagrangianSums]


def steps_remembered(c: float) -> int:
    """Number of last steps that determine the state of a row to the last digit."""
    factor = abs(1.0 - c)
    return 1 if factor == 0.0 else math.ceil(math.log(np.finfo(np.float64).eps) / math.log(factor))


def solve_lagrangian(
    sweep: LagrangianSweep,
    features: Features,
    C: float,
    column: int = 0,
    *,
    c: float = 1.0,
    intercept: bool = True,
    tolerance: float = 1e-6,
    most_sweeps: int = 5000,
) -> MarginSolution:
    """Minimise the squared hinge ``C (1 - t f)_+^2`` by the Lagrangian method.

    Parameters
    ----------
    sweep : runs a reduction over all rows; each reduction depends on the results of earlier ones only.
    features : Features of n functions; ``Features(None, p)`` for the columns themselves.
    C : cost of a unit of loss, > 0.
    column : column of Y with the indicators of the class.
    c : beta nu, between 0 and 2; Mangasarian and Musicant take 1.9.
    intercept : False for a constant of 0.
    tolerance : largest relative duality gap.
    most_sweeps : largest number of sweeps; without convergence a warning is issued.

    Raises
    ------
    ParameterError
        c is not between 0 and 2.
    NumericalError
        The sums are not finite.
    """
    if not 0.0 < c < 2.0:
        raise ParameterError(f"c = beta nu is {c!r}; the method converges for numbers between 0 and 2")
    nu, n = 2.0 * C, features.width + int(intercept)
    first = sweep(ActiveSetStep(features, column, nu, np.zeros((1, features.width + 1))), "sums of all rows")
    assert isinstance(first, ActiveSetSums)
    with single_threaded_blas():
        # At b = 0 all rows are inside the margin: their sums are those of the table, and z = e.
        system = first.grams[0, :n, :n].copy()
        system[np.diag_indices(n)] += 1.0 / nu
        L = cholesky(
            system, "the matrix of the Lagrangian method", "take a smaller C, by which row weights are multiplied"
        )
    target, steps = first.labels[0], np.empty((0, features.width + 1))
    remembered = steps_remembered(c)
    best, primal, dual = np.zeros(features.width + 1), math.inf, -math.inf
    iterations: list[MarginIteration] = []
    for number in range(1, most_sweeps):
        s = np.zeros(features.width + 1)
        with single_threaded_blas():
            s[:n] = solve_lower_t(L, solve_lower(L, target[:n]))
        steps = np.vstack([steps, s])[-remembered:]
        sums = sweep(LagrangianStep(features, column, nu, c, steps), f"lagrangian {number}")
        assert isinstance(sums, LagrangianSums)
        target = sums.target
        # The objective is strongly convex: its gradient bounds how far it is from the minimum.
        gradient = s[:n] + sums.gradient[:n]
        value, gap = 0.5 * float(s @ s) + sums.loss, 0.5 * float(gradient @ gradient)
        # Near the end objectives differ by rounding only: the step that ends the method is better than its objective.
        if value <= primal or gap <= tolerance * value:
            best, primal = s, min(primal, value)
        dual = max(dual, value - gap)
        iterations.append(MarginIteration(value, value - gap, primal - dual))
        if gap <= tolerance * value:
            return MarginSolution(best, primal, dual, tuple(iterations), converged=True)
    solution = MarginSolution(best, primal, dual, tuple(iterations), converged=False)
    warn_user(
        f"the Lagrangian method made {most_sweeps} sweeps, and the relative duality gap is "
        f"{solution.relative_gap:.3g}; allow more, or a larger tolerance than {tolerance:g}"
    )
    return solution
