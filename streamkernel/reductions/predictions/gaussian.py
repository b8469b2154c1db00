"""Predictive mean and variance of a sparse Gaussian process at every row.

With ``z = L^-1 k(Z, x)``, signal variance s, the eigenvectors V of H, and the shares of the prior variance that the
rows explain along them (`solvers.GaussianSolution`), for each target::

    mean      k(x, Z) coefficients + intercept
    variance  s ( k(x, x) - sum_j (V^T z)_j^2 shares_j )      of f; plus the noise variance, of a target

Far from the basis the variance is that of the prior, not 0 (ALGORITHMS 6.1, 10.1). Beyond the cost of the mean, the
variance of a row costs one product with an (n, n) matrix: ``V^T z = (L^-T V)^T k(Z, x)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from streamkernel.basis import Basis
from streamkernel.linalg import PANEL_ROWS, even_panels, single_threaded_blas
from streamkernel.reductions.contract import SentAsFields
from streamkernel.reductions.row_map import RowMap
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float


@dataclass(frozen=True)
class GaussianPredictions(SentAsFields, RowMap):
    """Means, and with `std` standard deviations, with `level` the bounds of central intervals.

    An interval holds a target with probability `level` by the model::

        lower, upper = mean -+ z std,    z = Phi^-1((1 + level) / 2)

    Parameters
    ----------
    basis : Basis of n functions.
    coefficients : (n, d), intercept : (d,)
    rotation : (n, n) V, shares : (n, d)
    signal, noise : (d,) variances.
    flat : True to write vectors where d = 1.
    std : True to write a column "std" too.
    level : probability of the intervals that are written as "lower" and "upper", in (0, 1); None for none.
    latent : True for variances and "std" of f, without the noise; False for those of a target.
    """

    basis: Basis
    coefficients: Float
    intercept: Float
    rotation: Float
    shares: Float
    signal: Float
    noise: Float
    flat: bool = True
    std: bool = False
    level: float | None = None
    latent: bool = False

    @cached_property
    def _directions(self) -> Float:
        """``L^-T V`` (n, n). In tests its product with kernel values lost no more digits than L itself had lost."""
        with single_threaded_blas():
            return self.basis.coefficients(self.rotation)

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        d = self.coefficients.shape[1]
        kind = (None if self.flat and d == 1 else d, np.dtype(np.float64))
        names = ["prediction", *(["std"] if self.std else []), *(["lower", "upper"] if self.level is not None else [])]
        return dict.fromkeys(names, kind)

    @property
    def _with_variances(self) -> bool:
        return self.std or self.level is not None

    def values(self, X: AnyArray) -> Float:
        """Means, (b, d)."""
        return self._sweep(X, np.zeros((0, 0)))

    def moments(self, X: AnyArray) -> tuple[Float, Float]:
        """Means (b, d), and variances (b, d) of a target, or of f if `latent`."""
        variance = np.empty((len(X), self.coefficients.shape[1]))
        mean = self._sweep(X, variance)
        np.maximum(variance, 0.0, out=variance)
        if not self.latent:
            variance += self.noise
        return mean, variance

    def _sweep(self, X: AnyArray, variance: Float) -> Float:
        """Means; the variances of f go into `variance`, if it has rows.

        Rows are taken in panels, so that the kernel values stay in the cache.
        """
        X = np.ascontiguousarray(X, dtype=np.float64)
        mean = np.empty((len(X), self.coefficients.shape[1]))
        held = np.empty((2 if len(variance) else 1, min(PANEL_ROWS, len(X)), len(self.basis)))
        for rows in even_panels(len(X)):
            size = rows.stop - rows.start
            K = self.basis.prepared.block(X[rows], out=held[0, :size])
            mean[rows] = K @ self.coefficients + self.intercept
            if len(variance):
                squares = np.matmul(K, self._directions, out=held[1, :size])
                squares *= squares
                prior = self.basis.kernel.diagonal(X[rows])[:, None]
                variance[rows] = self.signal * (prior - squares @ self.shares)
        return mean

    def covariance(self, X: AnyArray) -> Float:
        """Covariance matrix of a few rows X (q, p) for each target, (q, q, d); of f if `latent`."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        q, d = len(X), self.coefficients.shape[1]
        found = np.empty((q, q, d))
        with single_threaded_blas():
            prior = self.basis.kernel.prepare(X).block(X)
            prior = 0.5 * (prior + prior.T)
            rotated = self.basis.block(X) @ self._directions
            for t in range(d):
                root = rotated * np.sqrt(self.shares[:, t])
                found[:, :, t] = self.signal[t] * (prior - root @ root.T)
        # A writeable view of the diagonals of all targets.
        diagonal = np.einsum("iit->it", found)
        np.maximum(diagonal, 0.0, out=diagonal)
        if not self.latent:
            diagonal += self.noise
        return found

    def samples(self, X: AnyArray, normal: Float) -> Float:
        """Draws (q, d, r) of the targets at a few rows X (q, p), which depend on each other; of f if `latent`.

        ``mean + C^(1/2) z`` with C the covariance. The symmetric root does not depend on the signs of eigenvectors.

        Parameters
        ----------
        normal : (q, d, r) independent standard normal z.
        """
        found = np.empty(normal.shape)
        mean, covariance = self.values(X), self.covariance(X)
        with single_threaded_blas():
            for t in range(mean.shape[1]):
                values, vectors = np.linalg.eigh(covariance[:, :, t])
                # Rounding may leave eigenvalues of f a little below 0.
                root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
                found[:, t] = mean[:, t, None] + root @ normal[:, t]
        return found

    def check_values(self, X: AnyArray) -> dict[str, Float]:
        """The values that are compared with the targets."""
        mean, variance = self.moments(X)
        return {"predicted": mean, "std": np.sqrt(variance)}

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        if self._with_variances:
            mean, variance = self.moments(block.X)
            std = np.sqrt(variance, out=variance)
            found = {"prediction": mean, "std": std} if self.std else {"prediction": mean}
            if self.level is not None:
                half = float(ndtri(0.5 + 0.5 * self.level)) * std
                found |= {"lower": mean - half, "upper": mean + half}
        else:
            found = {"prediction": self.values(block.X)}
        flat = self.columns["prediction"][0] is None
        return {name: values[:, 0] if flat else values for name, values in found.items()}

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.basis.points.shape
        d, panel = self.coefficients.shape[1], min(rows, PANEL_ROWS)
        held = panel * (n + 2 * d) + rows * (p + d)
        return int(8 * (held + (panel * (n + d + 2) + 4 * rows * d if self._with_variances else 0)))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        d = self.coefficients.shape[1]
        return float(2 * n * (p + d) + (2 * n * (n + d) if self._with_variances else 0))
