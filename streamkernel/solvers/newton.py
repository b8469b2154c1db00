"""Generalised regression by Newton's method, one sweep an iteration.

The sweep of a full step brings the losses of shorter ones too, and gradient and Hessian at its end: the next direction
needs no other. Only a full step that does not lower the objective enough costs another sweep, of the derivatives at
the best of the lengths. The first sweep, at constant functions, needs no likelihood of any row (`NewtonStart`).

The objective is convex; near the minimum the decrement squares itself from step to step (Boyd & Vandenberghe 2004,
section 9.5). Once half of it is within the tolerance, the last step is taken without a sweep.
"""

from __future__ import annotations

import numpy as np

from streamkernel.errors import NumericalError, warn_user
from streamkernel.reductions import Features, Latent, Likelihood, NewtonStart, NewtonStep
from streamkernel.solvers.latent_coordinates import STEPS, Coordinates, GeneralisedFit, Iteration, Sweep, accepted

__all__ = ["newton_minimum", "solve_newton"]

_SHORTENINGS = 4  # of a direction along which no length lowers the objective; each is by 2^10


def solve_newton(
    sweep: Sweep,
    features: Features,
    likelihood: Likelihood,
    *,
    signal_variance: float = 1.0,
    intercept: bool = True,
    tolerance: float = 1e-8,
    most_iterations: int = 30,
    start: Latent | None = None,
) -> GeneralisedFit:
    """Minimise ``-log p(y | f) + |u|^2 / 2``.

    Parameters
    ----------
    sweep : runs a reduction over all rows; each is a function of what the ones before it returned.
    features : Features of n functions of the unit kernel.
    likelihood : Likelihood
    signal_variance : s.
    intercept : whether there are constants, which are not penalised.
    tolerance : most that may be left to gain, as a share of the objective (of 1 nat, where that is smaller). The
        decrement squares itself: three digits less save one sweep.
    most_iterations : after which a warning is given.
    start : functions to begin at, as those of a fit to a sample; the first sweep then brings their derivatives.
        Without, constants are begun at.

    Raises
    ------
    DataError
        Targets are not the likelihood's.
    NumericalError
        Sums that are not finite, or no descent.
    """
    space = Coordinates(likelihood, features.width, signal_variance, intercept)
    fit = newton_minimum(sweep, features, space, tolerance, most_iterations, start)
    if not fit.converged:
        warn_user(
            f"Newton's method made {most_iterations} iterations and another would take {0.5 * fit.decrement:.3g} off "
            f"the objective of {fit.objective:.6g}; allow more, or a larger tolerance"
        )
    return fit


def newton_minimum(
    sweep: Sweep,
    features: Features,
    space: Coordinates,
    tolerance: float,
    most_iterations: int,
    start: Latent | None = None,
) -> GeneralisedFit:
    """`solve_newton` without its warning."""
    likelihood = space.likelihood
    if start is None:
        first = sweep(NewtonStart(features, likelihood), "newton start")
        V = space.start(first)
        sums = first.at(likelihood, space.latent(V).a)
    else:
        V = space.point(start)
        sums = sweep(NewtonStep(features, likelihood, space.latent(V), space.latent(V)), "newton start")
    objective = float(sums.losses[0]) + space.penalised(V)
    iterations: list[Iteration] = []
    while True:
        gradient = space.gradient(V, sums.gradient)
        direction = space.newton_direction(sums.curvature, gradient)
        decrement = max(0.0, -float(np.vdot(gradient, direction)))
        # At constants the curvature is not that of the rows, and says little of what is left.
        known = start is not None or len(iterations) > 0
        converged = known and 0.5 * decrement <= tolerance * max(objective, 1.0)
        if converged or len(iterations) == most_iterations:
            break
        for _ in range(_SHORTENINGS):
            name = f"newton step {len(iterations) + 1}"
            step = NewtonStep(features, likelihood, space.latent(V), space.latent(V + direction), STEPS)
            sums = sweep(step, name)
            objectives = sums.losses + [space.penalised(V + length * direction) for length in STEPS]
            taken = accepted(objectives, objective, decrement)
            if taken >= 0:
                break
            direction, decrement = direction * STEPS[-1], decrement * STEPS[-1]
        else:
            raise NumericalError("no step along the Newton direction lowers the objective; look at the targets")
        iterations.append(Iteration(objective, 0.5 * decrement, STEPS[taken]))
        V, objective = V + STEPS[taken] * direction, float(objectives[taken])
        if taken > 0:
            sums = sweep(NewtonStep(features, likelihood, space.latent(V), space.latent(V)), f"{name} shortened")
    if converged:
        V, objective, decrement = V + direction, objective - 0.5 * decrement, 0.0
    return space.fit(
        V, objective, decrement, iterations, converged=converged, method="newton", curvature=sums.curvature
    )
