"""Generalised regression by a quasi-Newton method, whose sweeps cost kernel values and O(n c) operations per row.

The method is L-BFGS (Nocedal 1980; Nocedal & Wright 2006, algorithm 7.4). Its initial Hessian is computed at every
step, at the current functions, from a sample of rows in memory, class by class: a sub-sampled Newton method (Byrd et
al. 2011), corrected by pairs of full gradients. Without a sample it is ``mean curvature kron G^T G``, which is exact
for constant functions. The sample saves sweeps if classes are rare or well separated: 7 classes, 0.5 % of the rows in
the rarest, took 24 sweeps with a sample of 4,000 rows and 250 without.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from streamkernel.errors import NumericalError, warn_user
from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions import Sample
from streamkernel.reductions.likelihoods import GradientStep, Likelihood, NewtonStart
from streamkernel.reductions.sums import Features
from streamkernel.solvers._hessians import CheapHessian, ConstantHessian, SampledHessians
from streamkernel.solvers.latent_coordinates import STEPS, Coordinates, GeneralisedFit, Iteration, Sweep, accepted
from streamkernel.type_aliases import Float

_MEMORY = 12  # pairs of steps and gradients


def solve_quasi_newton(
    sweep: Sweep,
    features: Features,
    likelihood: Likelihood,
    *,
    signal_variance: float = 1.0,
    intercept: bool = True,
    tolerance: float = 1e-8,
    most_iterations: int = 100,
    sample: Sample | None = None,
) -> GeneralisedFit:
    """Minimise ``-log p(y | f) + |u|^2 / 2``.

    Parameters
    ----------
    sample : rows that represent all rows, several per basis function; their targets are not used. None for no sample.

    The other parameters, and the errors, are those of `solve_newton`.
    """
    space = Coordinates(likelihood, features.width, signal_variance, intercept)
    first = sweep(NewtonStart(features, likelihood), "quasi-newton start")
    V = space.start(first)
    latent = space.latent(V)
    objective = first.loss(likelihood, latent.a) + space.penalised(V)
    gradient = space.gradient(V, first.gradient(likelihood, latent.a))
    curvature = likelihood.curvature(likelihood.cautious(latent.a)[None])[0]
    constant = ConstantHessian.of(space, first.gram, curvature)
    sampled: SampledHessians | None = None
    if sample is not None:
        G = np.ascontiguousarray(features.of(sample.X))
        sampled = SampledHessians(space, G, sample.weights * (first.weight / sample.weights.sum()), first.gram)
    guess: CheapHessian = constant
    pairs = Pairs(_MEMORY)
    iterations: list[Iteration] = []
    while True:
        direction = pairs.direction(gradient, guess)
        decrement = max(0.0, -float(np.vdot(gradient, direction)))
        converged = len(iterations) > 0 and 0.5 * decrement <= tolerance * max(objective, 1.0)
        if converged or len(iterations) == most_iterations:
            break
        name = f"quasi-newton step {len(iterations) + 1}"
        end = space.latent(V + direction)
        sums = sweep(GradientStep.of(features, likelihood, latent, end, STEPS), name)
        objectives = sums.losses + [space.penalised(V + length * direction) for length in STEPS]
        taken = accepted(objectives, objective, decrement)
        if taken < 0:
            if not len(pairs):
                raise NumericalError("no step along the gradient lowers the objective; look at the targets")
            pairs.forget()
            continue
        iterations.append(Iteration(objective, 0.5 * decrement, STEPS[taken]))
        step = STEPS[taken] * direction
        V, objective = V + step, float(objectives[taken])
        latent = space.latent(V)
        if taken > 0:
            sums = sweep(GradientStep.of(features, likelihood, latent, latent), f"{name} shortened")
        curvature = sums.mean_curvature
        guess = constant.with_curvature(curvature) if sampled is None else sampled.at(latent, curvature)
        after = space.gradient(V, sums.gradient)
        pairs.add(step, after - gradient)
        gradient = after
    if not converged:
        warn_user(
            f"the quasi-Newton method made {most_iterations} iterations and another would take {0.5 * decrement:.3g} "
            f"off the objective of {objective:.6g}; allow more, or a larger tolerance"
        )
    return space.fit(
        V,
        objective,
        decrement,
        iterations,
        converged=converged,
        method="quasi-newton",
        mean_curvature=curvature,
        gram=first.gram,
    )


class Pairs:
    """The last steps and the changes of the gradient along them, which correct an approximate Hessian."""

    def __init__(self, memory: int) -> None:
        self._pairs: deque[tuple[Float, Float, float]] = deque(maxlen=memory)

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, step: Float, change: Float) -> None:
        """Add a step, and the change of the gradient along it; a pair without positive curvature is ignored."""
        along = float(np.vdot(step, change))
        if along > np.finfo(np.float64).eps * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self._pairs.append((step, change, along))

    def forget(self) -> None:
        self._pairs.clear()

    def direction(self, gradient: Float, guess: CheapHessian) -> Float:
        """The direction ``-H^-1 gradient``, (n + 1, r), by the two-loop recursion."""
        with single_threaded_blas():
            q, shares = -gradient, list[float]()
            for step, change, along in reversed(self._pairs):
                shares.append(float(np.vdot(step, q)) / along)
                q = q - shares[-1] * change
            solution = guess.solve(q)
            if self._pairs:
                _, change, along = self._pairs[-1]
                solution = solution * (along / float(np.vdot(change, guess.solve(change))))
            for (step, change, along), share in zip(self._pairs, reversed(shares), strict=True):
                solution = solution + (share - float(np.vdot(change, solution)) / along) * step
        return solution
