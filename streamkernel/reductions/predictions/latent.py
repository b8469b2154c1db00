"""Predictions by Laplace's approximation: a mean and a covariance of the latent functions for every row.

With whitened features z (n,), free coordinates ``f = Q t`` of the functions (`Likelihood`), signal variance s and the
Hessian H (n r, n r) of the loss by the coefficients of the whitened features::

    E t = Q^T (A^T z + a)
    cov t = s (k(x, x) - z^T z) I + s (I kron z)^T (I + s H)^-1 (I kron z)

The first term is the prior variance outside the span of the basis. The second is the posterior covariance within the
span. Predictions multiply each term by a calibrated share (`solvers.calibrated`). The constants a are treated as known.
Rasmussen & Williams 2006, eqs. (3.23), (3.24) and (3.40), in whitened coordinates; ALGORITHMS 5.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.type_aliases import AnyArray, Float

_JITTER = 1e-12  # least variance, relative to s k(x, x) or to a covariance: rounding may give less than 0


class LatentCovariance(ABC):
    """``(I kron z)^T (I + s H)^-1 (I kron z)`` for each of many rows."""

    @property
    @abstractmethod
    def free(self) -> int:
        """Number of free coordinates r."""

    @abstractmethod
    def explained(self, G: Float) -> Float:
        """The covariances (b, r, r), symmetric, for whitened features G (b, n)."""

    @abstractmethod
    def to_arrays(self) -> dict[str, Float]:
        """The arrays that a model stores; `covariance_of` reads them."""

    @abstractmethod
    def flops_per_row(self) -> float: ...

    @abstractmethod
    def scratch_bytes(self, rows: int) -> int: ...


@dataclass(frozen=True)
class FullCovariance(LatentCovariance):
    """Covariance of the full Hessian, as a sum of squares: no variance is negative.

    Parameters
    ----------
    blocks : (r (r + 1) / 2, n, n), the lower blocks of ``L^-1``, row by row, with ``L L^T = I + s H``.
    """

    blocks: Float

    @property
    def free(self) -> int:
        return int((np.sqrt(8 * len(self.blocks) + 1) - 1) / 2)

    def explained(self, G: Float) -> Float:
        r = self.free
        found = np.zeros((len(G), r, r))
        rows = np.empty((len(G), r, G.shape[1]))
        blocks = iter(self.blocks)
        for j in range(1, r + 1):
            for a in range(j):
                np.matmul(G, next(blocks).T, out=rows[:, a])
            found[:, :j, :j] += rows[:, :j] @ rows[:, :j].transpose(0, 2, 1)
        return found

    def to_arrays(self) -> dict[str, Float]:
        return {"covariance": self.blocks}

    def flops_per_row(self) -> float:
        return float(2 * self.blocks.size + self.blocks.shape[1] * self.free**3)

    def scratch_bytes(self, rows: int) -> int:
        return int(8 * rows * self.free * (self.blocks.shape[1] + 2 * self.free))


@dataclass(frozen=True)
class KroneckerCovariance(LatentCovariance):
    """Covariance of the approximation ``C kron M`` of the Hessian.

    C is the mean curvature of the rows, M the Gram matrix of their features. With ``C = U diag(c) U^T`` and ``M = V
    diag(h) V^T``, the inverse is diagonal in ``U kron V``.

    Parameters
    ----------
    vectors : (n, n), V; class_vectors : (r, r), U
    shrinkage : (n, r), ``1 / (1 + s h_j c_k)``
    """

    vectors: Float
    class_vectors: Float
    shrinkage: Float

    @property
    def free(self) -> int:
        return len(self.class_vectors)

    def explained(self, G: Float) -> Float:
        along = (G @ self.vectors) ** 2 @ self.shrinkage
        return np.asarray((along[:, None, :] * self.class_vectors) @ self.class_vectors.T)

    def to_arrays(self) -> dict[str, Float]:
        return {
            "covariance_vectors": self.vectors,
            "covariance_class_vectors": self.class_vectors,
            "covariance_shrinkage": self.shrinkage,
        }

    def flops_per_row(self) -> float:
        return 2.0 * (self.vectors.size + self.shrinkage.size + self.free**3)

    def scratch_bytes(self, rows: int) -> int:
        return int(8 * rows * (2 * len(self.vectors) + 2 * self.free**2))


def covariance_of(arrays: dict[str, AnyArray]) -> LatentCovariance:
    """The covariance that `LatentCovariance.to_arrays` wrote."""
    if "covariance" in arrays:
        return FullCovariance(arrays["covariance"])
    names = ("covariance_vectors", "covariance_class_vectors", "covariance_shrinkage")
    return KroneckerCovariance(*(arrays[name] for name in names))


@dataclass(frozen=True)
class LatentPosterior:
    """Mean and covariance of the latent functions at given rows.

    Parameters
    ----------
    basis : Basis of n functions, with the unit kernel k.
    coefficients : (n, c) coefficients of the kernel values, ``L^-T A``; intercept : (c,)
    contrasts : (c, r), Q.
    signal_variance : signal variance s.
    covariance : posterior covariance of the coefficients of the whitened features.
    residual_share : factor of the variance outside the span of the basis, ``s (k(x, x) - |z|^2)``. The fit is in the
        span and does not account for this variance, so that the factor is calibrated (`solvers.calibrated`).
    covariance_share : factor of the posterior covariance within the span, likewise.
    """

    basis: Basis
    coefficients: Float
    intercept: Float
    contrasts: Float
    signal_variance: float
    covariance: LatentCovariance
    residual_share: float = 1.0
    covariance_share: float = 1.0

    def mean(self, X: AnyArray) -> Float:
        """Mean of the functions, (b, c)."""
        return np.asarray(self.basis.block(X) @ self.coefficients + self.intercept)

    def moments(self, X: AnyArray) -> tuple[Float, Float]:
        """Mean of the functions (b, c), and covariance of their free coordinates (b, r, r)."""
        mean, covariance, left = self.parts(X)
        return mean, self.shared(covariance, left)

    def parts(self, X: AnyArray) -> tuple[Float, Float, Float]:
        """Mean (b, c), covariance within the span (b, r, r), and variance outside the span (b,), without the shares."""
        G = self.basis.block(X)
        mean = G @ self.coefficients + self.intercept
        if len(self.basis):
            self.basis.whiten(G)
        covariance = self.signal_variance * self.covariance.explained(G)
        diagonal = np.asarray(self.basis.kernel.diagonal(X), dtype=np.float64)
        left = np.maximum(diagonal - np.einsum("ij,ij->i", G, G), _JITTER * diagonal)
        return mean, covariance, self.signal_variance * left

    def shared(self, covariance: Float, left: Float) -> Float:
        """The covariance (b, r, r) of both terms, each times its share."""
        believed = np.asarray(self.covariance_share * covariance)
        along = np.arange(believed.shape[1])
        least = _JITTER * believed[:, along, along].max(axis=1)
        believed[:, along, along] += np.maximum(self.residual_share * left, least)[:, None]
        return believed

    def scratch_bytes(self, rows: int) -> int:
        """Bytes that `moments` needs, including its results."""
        n, p = self.basis.points.shape
        c = len(self.intercept)
        return int(8 * rows * (n + p + 2 * c + 2) + self.covariance.scratch_bytes(rows))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float(2 * n * (p + len(self.intercept) + 1) + n * n) + self.covariance.flops_per_row()
