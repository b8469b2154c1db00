"""Generalised regression by Newton's method, one sweep per iteration.

The sweep of a full step also sums the losses of shorter steps, and the gradient and Hessian at its end. The next
direction needs no other sweep. Only if the full step does not decrease the objective enough, a second sweep sums the
derivatives at the best step length. The first sweep, at constant functions, needs no values of f (`NewtonStart`).

The objective is convex. Near the minimum each step squares the decrement (Boyd & Vandenberghe 2004, section 9.5). When
half of the decrement is within the tolerance, the last step is taken without a sweep.
"""

from __future__ import annotations

import numpy as np

from streamkernel.errors import NumericalError, warn_user
from streamkernel.reductions.likelihoods import Latent, Likelihood, NewtonStart, NewtonStep
from streamkernel.reductions.sums import Features
from streamkernel.solvers.generalised.latent_coordinates import (
    STEPS,
    Coordinates,
    GeneralisedFit,
    Iteration,
    Sweep,
    accepted,
)

_SHORTENINGS = 4  # of a direction along which no length decreases the objective, each by 2^10


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
    sweep : Sweep, which runs a reduction over all rows; each reduction depends on the results of earlier ones only.
    features : Features of n functions of the unit kernel.
    likelihood : Likelihood
    signal_variance : signal variance s.
    intercept : True for unpenalised constants.
    tolerance : stop when half the decrement is at most this share of the objective (or of 1 nat, if the objective is
        smaller). Each step squares the decrement, so that three digits less save about one sweep.
    most_iterations : largest number of iterations; without convergence a warning is issued.
    start : functions to start from, such as those of a fit to a sample; the first sweep then sums their derivatives.
        None starts from constants.

    Raises
    ------
    DataError
        The targets do not fit the likelihood.
    NumericalError
        The sums are not finite, or no step decreases the objective.
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
        # At constant functions the curvature may not be that of the rows, and the decrement is no test of convergence.
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
