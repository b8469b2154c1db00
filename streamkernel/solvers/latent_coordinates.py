"""Generalised Gaussian process regression: the objective, its coordinates, and what a solver leaves.

::

    f = sqrt(s) G u Q^T + b Q^T,    u ~ N(0, I),    minimise  loss(f) + |u|^2 / 2

over u (n, r) and constants b (r,), which are not penalised; G are whitened features of the unit kernel, s is the signal
variance, Q the contrasts of the likelihood (`Likelihood`; 1 for one function). ALGORITHMS 5.2: at the minimum of a
basis of all rows, ``K^-1 f = y - A'(f)`` (Tresp 2001, section 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamkernel.linalg import cholesky, single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.reductions import Latent, Likelihood, Reduction, StartSums

__all__ = ["STEPS", "WAY_OUT", "Coordinates", "GeneralisedFit", "Iteration", "Sweep", "accepted"]

Float = NDArray[np.float64]
Result = TypeVar("Result")

WAY_OUT = "give a smaller signal variance, a shorter lengthscale, or fewer basis functions"

# Lengths at which the loss is known after each sweep.
STEPS = (1.0, 0.5, 0.25, 0.125, 2.0**-5, 2.0**-7, 2.0**-10)

# A step must bring this share of what the slope promises (Armijo 1966).
_SUFFICIENT = 1e-4
_ROUNDING = 1e-14  # of an objective


class Sweep(Protocol):
    """Runs a reduction over all rows: the engine's business."""

    def __call__(self, reduction: Reduction[Result], name: str, /) -> Result: ...


@dataclass(frozen=True)
class Iteration:
    """One iteration: the objective before it, what the step promised to take off, and the length that was taken."""

    objective: float
    promised: float
    step: float

    def to_config(self) -> dict[str, float]:
        return {"objective": self.objective, "promised": self.promised, "step": self.step}


@dataclass(frozen=True)
class GeneralisedFit:
    """The minimum.

    Attributes
    ----------
    u : (n, r), b : (r,)
    latent : the same as coefficients (n, c) of the whitened features and constants (c,).
    signal_variance : s.
    loss : ``-log p(y | f)``, all of it; objective : with ``|u|^2 / 2``.
    decrement : what a further step would take off the objective, to first order.
    iterations : those that were made.
    converged : whether the decrement is below the tolerance.
    method : "newton" or "quasi-newton".
    curvature : (K, n + 1, n + 1), the P_k of `NewtonSums`, where the last sweep was; None after quasi-Newton steps.
    mean_curvature : (c, c) of the rows, gram : (n + 1, n + 1) of features and the constant 1; None after Newton steps.
    coordinates : in which it was solved.
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

    def to_config(self) -> dict[str, Any]:
        """How it went."""
        return {
            "method": self.method,
            "loss": self.loss,
            "objective": self.objective,
            "decrement": self.decrement,
            "converged": self.converged,
            "iterations": [iteration.to_config() for iteration in self.iterations],
        }


@dataclass(frozen=True)
class Coordinates:
    """Points V (n + 1, r), whose rows are those of u, and b.

    Parameters
    ----------
    likelihood : Likelihood
    width : n.
    signal_variance : s.
    intercept : whether there are constants; without, b stays 0.
    """

    likelihood: Likelihood
    width: int
    signal_variance: float
    intercept: bool

    @property
    def scale(self) -> Float:
        """(n + 1,), of the features."""
        return np.append(np.full(self.width, np.sqrt(self.signal_variance)), float(self.intercept))

    @property
    def penalty(self) -> Float:
        """(n + 1,), 1 where a row is penalised; without constants theirs is, so that nothing moves them."""
        return np.append(np.ones(self.width), float(not self.intercept))

    def constants(self, a: Float) -> Float:
        """The point of the constant functions a (c,)."""
        V = np.zeros((self.width + 1, self.likelihood.free))
        V[-1] = a @ self.likelihood.contrasts
        return V

    def start(self, sums: StartSums) -> Float:
        """Constant functions at the shares of the classes, or the mean count."""
        if not self.intercept:
            return self.constants(np.zeros(self.likelihood.width))
        return self.constants(self.likelihood.constants(self.likelihood.shares(sums.targets[-1], sums.weight)))

    def point(self, latent: Latent) -> Float:
        """The point of functions; what is common to all classes, which changes nothing, is left out."""
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
        """Of the objective, (n + 1, r), from sums (n + 1, c) of the loss."""
        return self.scale[:, None] * (sums @ self.likelihood.contrasts) + self.penalty[:, None] * V

    def hessian(self, curvature: Float) -> Float:
        """Of the objective, (r (n + 1), r (n + 1)), coordinate by coordinate, from the P_k."""
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
            L = cholesky(self.hessian(curvature), "the Hessian of the likelihood", WAY_OUT)
            solution = solve_lower_t(L, solve_lower(L, gradient.T.ravel()))
        return -solution.reshape(self.likelihood.free, self.width + 1).T

    def fit(
        self, V: Float, objective: float, decrement: float, iterations: list[Iteration], **rest: Any
    ) -> GeneralisedFit:
        """The result at a point."""
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
    """Position of the step length to take: the full one where it is good enough, else that of least objective.

    -1 where no length lowers the objective. `promised` is what the slope takes off for a step of length 1.
    """
    if objectives[0] <= before - _SUFFICIENT * promised + _ROUNDING * abs(before):
        return 0
    best = int(np.nanargmin(np.where(np.isfinite(objectives), objectives, np.inf)))
    return best if objectives[best] < before else -1
