"""Laplace's approximation at the minimum: the posterior covariance, and the evidence of the hyper-parameters.

With the Hessian H of the loss by the coefficients of the whitened features, in free coordinates (n r, n r)::

    q(u) = N(u^, (I + s H)^-1)
    log q(y) = -loss - |u^|^2 / 2 - 1/2 log det(I + s H)
    effective parameters = tr s H (I + s H)^-1

Rasmussen & Williams 2006, eqs. (3.20), (3.32) and (3.44), in whitened coordinates, where ``det(I + W^1/2 K W^1/2)`` is
``det(I + s H)`` and no eigenvalue is below 1. The constants b are parameters, as s is: they have their best values and
are not integrated over, so that they add nothing to the variance.

Without a Hessian (a quasi-Newton fit of very many classes), ``mean curvature kron G^T G`` approximates H. It has the
curvature averaged over all rows, not that of each row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import cholesky, single_threaded_blas, solve_lower, symmetric_eigen
from streamkernel.reductions.predictions import FullCovariance, KroneckerCovariance, LatentCovariance, LatentPosterior
from streamkernel.solvers.generalised.latent_coordinates import REMEDY, GeneralisedFit
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class LaplaceApproximation:
    """The normal approximation of the posterior of the coefficients.

    Attributes
    ----------
    fit : GeneralisedFit at the minimum.
    log_evidence : log evidence of all rows, nats.
    effective_parameters : effective number of parameters, at most n r.
    covariance : LatentCovariance for predictions.
    """

    fit: GeneralisedFit
    log_evidence: float
    effective_parameters: float
    covariance: LatentCovariance

    @classmethod
    def of(cls, fit: GeneralisedFit) -> LaplaceApproximation:
        """The approximation around the minimum.

        Raises
        ------
        NumericalError
            The curvature is not finite.
        """
        with single_threaded_blas():
            log_det, effective, covariance = _of_hessian(fit) if fit.curvature is not None else _of_product(fit)
        return cls(fit, -fit.objective - 0.5 * log_det, effective, covariance)

    def posterior(self, basis: Basis) -> LatentPosterior:
        """The posterior for predictions; `basis` is the basis of the fit."""
        latent = self.fit.latent
        with single_threaded_blas():
            coefficients = basis.coefficients(latent.A)
        return LatentPosterior(
            basis,
            coefficients,
            latent.a,
            self.fit.coordinates.likelihood.contrasts,
            self.fit.signal_variance,
            self.covariance,
        )


def precision_factor(fit: GeneralisedFit) -> Float:
    """Lower L with ``L L^T = I + s H``, (n r, n r), ordered by free coordinate."""
    assert fit.curvature is not None
    n, r = fit.u.shape
    of_features = np.arange(r * (n + 1)).reshape(r, n + 1)[:, :n].ravel()
    precision = fit.coordinates.hessian(fit.curvature)[np.ix_(of_features, of_features)]
    return cholesky(precision, "the precision of the Laplace approximation", REMEDY)


def _of_hessian(fit: GeneralisedFit) -> tuple[float, float, LatentCovariance]:
    n, r = fit.u.shape
    L = precision_factor(fit)
    # Only blocks on and below the diagonal are not 0, and only they are stored.
    root = solve_lower(L, np.eye(n * r)).reshape(r, n, r, n)
    blocks = np.stack([root[j, :, a] for j in range(r) for a in range(j + 1)])
    log_det = 2.0 * float(np.log(np.diagonal(L)).sum())
    return log_det, n * r - float(np.vdot(blocks, blocks)), FullCovariance(blocks)


def _of_product(fit: GeneralisedFit) -> tuple[float, float, LatentCovariance]:
    assert fit.gram is not None
    assert fit.mean_curvature is not None
    Q = fit.coordinates.likelihood.contrasts
    features = symmetric_eigen(fit.gram[:-1, :-1], "the Gram matrix of the features")
    classes = symmetric_eigen(Q.T @ fit.mean_curvature @ Q, "the curvature of the likelihood")
    products = fit.signal_variance * np.outer(np.maximum(features.values, 0.0), np.maximum(classes.values, 0.0))
    shrinkage = 1.0 / (1.0 + products)
    covariance = KroneckerCovariance(features.vectors, classes.vectors, shrinkage)
    return float(np.log1p(products).sum()), float((1.0 - shrinkage).sum()), covariance
