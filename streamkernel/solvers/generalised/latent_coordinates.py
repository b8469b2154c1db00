"""Generalised Gaussian process regression: the objective, its coordinates, and the result of a solver.

::

    f = sqrt(s) G u Q^T + b Q^T,    u ~ N(0, I),    minimise  loss(f) + |u|^2 / 2

over u (n, r) and constants b (r,), which are not penalised. G are the whitened features of the unit kernel, s is the
signal variance, and Q the contrasts of the likelihood (`Likelihood`; 1 for one function). With all rows as basis,
``K^-1 f = y - A'(f)`` at the minimum (Tresp 2001, section 2.3; ALGORITHMS 5.2).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from streamkernel.linalg import cholesky, single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.reductions import Reduction
from streamkernel.reductions.likelihoods import Latent, Likelihood, StartSums
from streamkernel.type_aliases import Fields, Float

Result = TypeVar("Result")

REMEDY = "give a smaller signal variance, a shorter lengthscale, or fewer basis functions"

# Step lengths at which each sweep sums the loss.
STEPS = (1.0, 0.5, 0.25, 0.125, 2.0**-5, 2.0**-7, 2.0**-10)

# A step must gain this share of the decrease that the slope predicts (Armijo 1966).
_SUFFICIENT = 1e-4
_ROUNDING = 1e-14  # of an objective, relative


class Sweep(Protocol):
    """Runs a reduction over all rows and returns its result; the engine supplies it."""

    def __call__(self, reduction: Reduction[Result], name: str, /) -> Result: ...


@dataclass(frozen=True)
class Iteration:
    """One iteration: the objective before it, the predicted decrease of a full step, and the step length."""

    objective: float
    promised: float
    step: float


@dataclass(frozen=True)
class GeneralisedFit:
    """The minimum, as found by a solver.

    Attributes
    ----------
    u : (n, r), b : (r,)
    latent : the same functions as coefficients (n, c) of the whitened features and constants (c,).
    signal_variance : signal variance s.
    loss : ``-log p(y | f)`` of all rows; objective : loss + ``|u|^2 / 2``.
    decrement : squared Newton decrement; a further step would decrease the objective by about half of it.
    iterations : records of the iterations.
    converged : True if half the decrement is within the tolerance.
    method : "newton" or "quasi-newton".
    curvature : (K, n + 1, n + 1), the P_k of `NewtonSums` at the last sweep; None after quasi-Newton steps.
    mean_curvature : (c, c) mean curvature of the rows, gram : (n + 1, n + 1) Gram matrix of [G, 1]; None after Newton
        steps.
    coordinates : Coordinates of u and b.
    """

    u: Float
    b: Float
    latent: Latent
    signal_variance: float
    loss: float
    objective: float
    decrement: float
    iterations: list[Iteration]
    converged: bool
    method: str
    coordinates: Coordinates
    curvature: Float | None = None
    mean_curvature: Float | None = None
    gram: Float | None = None

    def to_config(self) -> Fields:
        """Record of the fit as plain JSON."""
        return {
            "method": self.method,
            "loss": self.loss,
            "objective": self.objective,
            "decrement": self.decrement,
            "converged": self.converged,
            "iterations": [asdict(iteration) for iteration in self.iterations],
        }


@dataclass(frozen=True)
class Coordinates:
    """Coordinates of the problem: points V (n + 1, r), whose rows are those of u and then b.

    Parameters
    ----------
    likelihood : Likelihood
    width : number of features n.
    signal_variance : signal variance s.
    intercept : True for constants b; with False b stays 0.
    """

    likelihood: Likelihood
    width: int
    signal_variance: float
    intercept: bool

    @property
    def scale(self) -> Float:
        """Factors of the features [G, 1], (n + 1,)."""
        return np.append(np.full(self.width, np.sqrt(self.signal_variance)), float(self.intercept))

    @property
    def penalty(self) -> Float:
        """Penalties (n + 1,): 1 for u; 0 for b, but 1 without constants, so that b stays 0."""
        return np.append(np.ones(self.width), float(not self.intercept))

    def constants(self, a: Float) -> Float:
        """The point V of the constant functions a (c,)."""
        V = np.zeros((self.width + 1, self.likelihood.free))
        V[-1] = a @ self.likelihood.contrasts
        return V

    def start(self, sums: StartSums) -> Float:
        """The point of the constant functions that fit the shares of the classes, or the mean count."""
        if not self.intercept:
            return self.constants(np.zeros(self.likelihood.width))
        return self.constants(self.likelihood.constants(self.likelihood.shares(sums.targets[-1], sums.weight)))

    def point(self, latent: Latent) -> Float:
        """The point V of given functions, without their part common to all classes, which has no effect."""
        V = np.concatenate([latent.A / np.sqrt(self.signal_variance), float(self.intercept) * latent.a[None]])
        return V @ self.likelihood.contrasts

    def latent(self, V: Float) -> Latent:
        """The functions at a point."""
        B = (self.scale[:, None] * V) @ self.likelihood.contrasts.T
        return Latent(np.ascontiguousarray(B[:-1]), B[-1])

    def penalised(self, V: Float) -> float:
        """``|u|^2 / 2``."""
        return float(0.5 * np.vdot(V[:-1], V[:-1]))

    def gradient(self, V: Float, sums: Float) -> Float:
        """Gradient of the objective, (n + 1, r), from the gradient sums (n + 1, c) of the loss."""
        return self.scale[:, None] * (sums @ self.likelihood.contrasts) + self.penalty[:, None] * V

    def hessian(self, curvature: Float) -> Float:
        """Hessian of the objective, (r (n + 1), r (n + 1)), ordered by free coordinate, from the P_k."""
        r, size = self.likelihood.free, self.width + 1
        D = self.likelihood.pairs @ self.likelihood.contrasts
        products = (D[:, :, None] * D[:, None, :]).reshape(len(D), r * r)
        blocks = (products.T @ curvature.reshape(len(D), -1)).reshape(r, r, size, size)
        blocks *= np.outer(self.scale, self.scale)
        H = np.ascontiguousarray(blocks.transpose(0, 2, 1, 3)).reshape(r * size, r * size)
        H[np.diag_indices(len(H))] += np.tile(self.penalty, r)
        return H

    def newton_direction(self, curvature: Float, gradient: Float) -> Float:
        """``-hessian^-1 gradient``, (n + 1, r)."""
        with single_threaded_blas():
            L = cholesky(self.hessian(curvature), "the Hessian of the likelihood", REMEDY)
            solution = solve_lower_t(L, solve_lower(L, gradient.T.ravel()))
        return -solution.reshape(self.likelihood.free, self.width + 1).T

    def fit(
        self, V: Float, objective: float, decrement: float, iterations: list[Iteration], **rest: Any
    ) -> GeneralisedFit:
        """The result of a solver at the point V."""
        return GeneralisedFit(
            u=np.ascontiguousarray(V[:-1]),
            b=V[-1].copy(),
            latent=self.latent(V),
            signal_variance=self.signal_variance,
            loss=objective - self.penalised(V),
            objective=objective,
            decrement=decrement,
            iterations=iterations,
            coordinates=self,
            **rest,
        )


def accepted(objectives: Float, before: float, promised: float) -> int:
    """Position of the step length to take: the full step if it satisfies Armijo's rule, else the smallest objective.

    It is -1 if no length decreases the objective. `promised` is the decrease that the slope predicts for a full step.
    """
    if objectives[0] <= before - _SUFFICIENT * promised + _ROUNDING * abs(before):
        return 0
    best = int(np.nanargmin(np.where(np.isfinite(objectives), objectives, np.inf)))
    return best if objectives[best] < before else -1
