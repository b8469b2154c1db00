"""Cheap approximate Hessians, which a quasi-Newton method corrects: of constant functions, or of a sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from streamkernel.linalg import (
    cholesky,
    mirror_upper,
    single_threaded_blas,
    solve_lower,
    solve_lower_t,
    symmetric_eigen,
)
from streamkernel.reductions.likelihoods import Latent, add_weighted_gram
from streamkernel.solvers.latent_coordinates import WAY_OUT, Coordinates
from streamkernel.type_aliases import Float

_SHARE_OF_ALL = 0.01  # weight of the mean curvature of all rows, because a sample may have no rows of a class


class CheapHessian(Protocol):
    """An approximate Hessian H with a cheap solve."""

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
                factors.append(cholesky(H, "the Hessian of the sample", WAY_OUT))
        return SampledHessian(factors, self.space.likelihood.contrasts)
