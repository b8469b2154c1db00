"""Generalised regression by a quasi-Newton method, whose sweeps cost kernel values and O(n c) operations per row.

The method is L-BFGS (Nocedal 1980; Nocedal & Wright 2006, algorithm 7.4). Its initial Hessian is computed at every
step, at the current functions, from a sample of rows in memory, class by class: a sub-sampled Newton method (Byrd et
al. 2011), corrected by pairs of full gradients. Without a sample it is ``mean curvature kron G^T G``, which is exact
for constant functions. The sample saves sweeps if classes are rare or well separated: 7 classes, 0.5 % of the rows in
the rarest, took 24 sweeps with a sample of 4,000 rows and 250 without.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from streamkernel.errors import NumericalError, warn_user
from streamkernel.linalg import (
    cholesky,
    mirror_upper,
    single_threaded_blas,
    solve_lower,
    solve_lower_t,
    symmetric_eigen,
)
from streamkernel.reductions import Sample
from streamkernel.reductions.likelihoods import GradientStep, Latent, Likelihood, NewtonStart, add_weighted_gram
from streamkernel.reductions.sums import Features
from streamkernel.solvers.generalised.latent_coordinates import (
    REMEDY,
    STEPS,
    Coordinates,
    GeneralisedFit,
    Iteration,
    Sweep,
    accepted,
)
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
                # The scale of the initial Hessian that fits the last pair (Nocedal & Wright 2006, eq. (7.20), for any
                # initial Hessian), so that the full step is usually accepted.
                _, change, along = self._pairs[-1]
                solution = solution * (along / float(np.vdot(change, guess.solve(change))))
            for (step, change, along), share in zip(self._pairs, reversed(shares), strict=True):
                solution = solution + (share - float(np.vdot(change, solution)) / along) * step
        return solution


_SHARE_OF_ALL = 0.01  # weight of the mean curvature of all rows, because a sample may have no rows of a class


class CheapHessian(Protocol):
    """An approximate Hessian H with a cheap solve, which the pairs of gradients correct."""

    def solve(self, gradient: Float) -> Float:
        """``H^-1 gradient``, (n + 1, r)."""
        ...


@dataclass(frozen=True)
class ConstantHessian:
    """``E + C kron M``, ``M = [sqrt(s) G, 1]^T [sqrt(s) G, 1]``, E = 1 for u and 0 for b. It is exact for constant f.

    With ``C = U diag(c) U^T`` and b eliminated, ``I + c_k (M_uu - M_ub M_ub^T / M_bb)`` is diagonal in the eigenvectors
    of the centred Gram matrix, for every k. Two eigendecompositions are therefore enough for all solves.

    Parameters
    ----------
    vectors, values : (n, n), (n,) eigenvectors and eigenvalues of the centred Gram matrix.
    class_vectors, class_values : (r, r), (r,) eigenvectors and eigenvalues of C.
    border : (n,), M_ub; corner : M_bb, 0 without constants.
    contrasts : (c, r), Q of the likelihood.
    """

    vectors: Float
    values: Float
    class_vectors: Float
    class_values: Float
    border: Float
    corner: float
    contrasts: Float

    @classmethod
    def of(cls, space: Coordinates, gram: Float, curvature: Float) -> ConstantHessian:
        """The Hessian, given the Gram matrix of [G, 1] (n + 1, n + 1) and the mean curvature of the rows (c, c)."""
        M = gram * np.outer(space.scale, space.scale)
        border, corner = M[:-1, -1].copy(), float(M[-1, -1])
        with single_threaded_blas():
            centred = M[:-1, :-1] - np.outer(border, border) / (corner or 1.0)
            eigen = symmetric_eigen(centred, "the Gram matrix of the features")
        Q, none = space.likelihood.contrasts, np.zeros(0)
        unfinished = cls(eigen.vectors, np.maximum(eigen.values, 0.0), none, none, border, corner, Q)
        return unfinished.with_curvature(curvature)

    def with_curvature(self, curvature: Float) -> ConstantHessian:
        """The Hessian with another curvature (c, c)."""
        with single_threaded_blas():
            eigen = symmetric_eigen(self.contrasts.T @ curvature @ self.contrasts, "the curvature of the likelihood")
        # A class without rows has a curvature near 0. It is bounded from below, because solves divide by it.
        least = np.finfo(np.float64).eps * max(float(eigen.values[-1]), np.finfo(np.float64).tiny)
        return replace(self, class_vectors=eigen.vectors, class_values=np.maximum(eigen.values, least))

    def solve(self, gradient: Float) -> Float:
        rotated = gradient @ self.class_vectors
        u, b = rotated[:-1], rotated[-1]
        if self.corner:
            u = u - np.outer(self.border, b / self.corner)
        u = self.vectors @ ((self.vectors.T @ u) / (1.0 + np.outer(self.values, self.class_values)))
        if self.corner:
            b = (b / self.class_values - self.border @ u) / self.corner
        return np.asarray(np.concatenate([u, b[None]]) @ self.class_vectors.T)


@dataclass(frozen=True)
class SampledHessian:
    """One block per class; the curvature between classes is left out.

    Parameters
    ----------
    factors : lower Cholesky factors (n + 1, n + 1) of the blocks.
    contrasts : (c, r), Q of the likelihood.
    """

    factors: list[Float]
    contrasts: Float

    def solve(self, gradient: Float) -> Float:
        by_class = gradient @ self.contrasts.T
        solved = [solve_lower_t(L, solve_lower(L, by_class[:, c])) for c, L in enumerate(self.factors)]
        return np.asarray(np.stack(solved, axis=1) @ self.contrasts)


@dataclass(frozen=True)
class SampledHessians:
    """Hessians of a sample of rows in memory, which represents all rows.

    Unlike `ConstantHessian`, they have the curvature of each row, which is larger where a class is uncertain.

    Parameters
    ----------
    space : Coordinates of the problem.
    G : (s, n) whitened features of the sample; weights : (s,), scaled to the sum of the weights of all rows.
    gram : (n + 1, n + 1) Gram matrix of [G, 1] over all rows.
    """

    space: Coordinates
    G: Float
    weights: Float
    gram: Float

    def at(self, latent: Latent, mean_curvature: Float) -> SampledHessian:
        """The Hessian at the functions `latent`, given the mean curvature (c, c) of all rows there."""
        curvature = self.weights[:, None] * self.space.likelihood.diagonal(latent.values(self.G))
        size = np.outer(self.space.scale, self.space.scale)
        factors = []
        with single_threaded_blas():
            for c, of_all in enumerate(np.diagonal(mean_curvature)):
                H = np.zeros_like(self.gram)
                add_weighted_gram(self.G, np.ascontiguousarray(curvature[:, c : c + 1]), H[None])
                H = (1.0 - _SHARE_OF_ALL) * mirror_upper(H) + _SHARE_OF_ALL * of_all * self.gram
                H *= size
                H[np.diag_indices(len(H))] += self.space.penalty
                factors.append(cholesky(H, "the Hessian of the sample", REMEDY))
        return SampledHessian(factors, self.space.likelihood.contrasts)
