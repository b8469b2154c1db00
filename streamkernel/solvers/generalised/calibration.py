"""Calibration of the variance of Laplace's approximation: the shares of it that predictions use.

A prediction averages over ``q s (k(x, x) - |z|^2) + e s z^T (I + s H)^-1 z`` (`LatentPosterior`):

- q is the share of the prior variance of f outside the span of the basis. The fit is in the span and explains the
  targets without this variance. With a small basis, an average over all of it moves probabilities too near to equality,
  and makes rates too large.
- e, for classes, is the share of the posterior variance within the span. If classes are separated without error, s is
  large, and a row of certain class has a curvature near 0. The normal distribution around the minimum is then as wide
  as the prior, and half of it lies where the row has another class. The true posterior lies on one side only (Kuss &
  Rasmussen 2005, section 5). On pendigits (10 classes, n = 200, s = 600) the most probable class had probability 0.45
  on average and was right in 99 % of the rows: log loss .854, and .022 with e = 1/64.

Both shares are chosen from a short list. They maximise the likelihood of the targets of some rows, each predicted from
all others (leave-one-out): two numbers from thousands of rows. To leave a row i out removes its curvature W_i and its
slope rho_i. To first order the minimum moves to (Vehtari et al. 2016, section 3.5; C C^T = S_i = cov t_i)::

    t_-i = t_i + S_-i rho_i,    S_-i = C (I - C^T W_i C)^-1 C^T

Rows of the fit are therefore as good as held-out rows: on pendigits this log loss differs from that of 2,000 held-out
rows by .0015 nats. A share other than 1 must gain 2 nats, because a smaller gain on few rows may be noise.

At a point of the basis the variance outside the span is 0, so that such rows do not determine q. They are not used if
at least half of the rows are no points of the basis. Otherwise each of them counts as if its function j were not in the
basis: the variance that the other functions do not explain is ``1 / (k(Z, Z)^-1)_jj``. It is a part of ``S_-i``,
because the row that determined it is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.special import gammaln

from streamkernel.basis import Basis
from streamkernel.linalg import single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.reductions import Sample
from streamkernel.reductions.likelihoods import Likelihood
from streamkernel.reductions.predictions import LatentPosterior
from streamkernel.reductions.predictions.class_probabilities import averaged_probabilities, mean_rate
from streamkernel.type_aliases import AnyArray, Float

SHARES = (1.0, 0.5, 0.25, 0.125, 2.0**-4, 2.0**-6, 2.0**-9)
_ROWS = 2000
_COVARIANCES = 1 << 22  # numbers in the covariances of all rows
_PANEL = 1 << 19  # numbers in the covariances of the rows of a panel
_MOST_LEVERAGE = 1.0 - 1e-3  # of a row on itself; with an approximate Hessian it may seem to exceed 1
_ROUNDS = 4
_WORTH = 2.0  # nats, over all rows, that a share other than 1 must gain
_AT_A_POINT = 1e-6  # residual, as a share of k(x, x), at or below which a row counts as a point of the basis
_TINY = np.finfo(np.float64).tiny


def calibrated(posterior: LatentPosterior, likelihood: Likelihood, sample: Sample) -> LatentPosterior:
    """The same posterior with the shares that maximise the leave-one-out likelihood of the targets.

    Parameters
    ----------
    posterior : LatentPosterior of the fit.
    likelihood : Likelihood of the fit.
    sample : rows of the fit, in random order; the first 2,000 are used, fewer with more than 45 classes.
    """
    most = min(_ROWS, max(_COVARIANCES // posterior.contrasts.shape[1] ** 2, 1))
    X, weights = sample.X[:most], sample.weights[:most]
    y = likelihood.targets(sample.Y[:most], 0)
    if not weights.any():
        return posterior
    with single_threaded_blas():
        own = posterior.signal_variance * _own_variance(posterior.basis, X)
        others = own == 0.0
        if 2 * np.count_nonzero(others) >= len(X) and weights[others].any():
            X, y, weights, own = X[others], y[others], weights[others], own[others]
        without = _moved_apart(*_left_out(posterior, likelihood, X, y, weights), own)
        return _best(posterior, lambda shares: _log_likelihood(shares, likelihood, without, y, weights), likelihood)


def _best(
    posterior: LatentPosterior, score: Callable[[LatentPosterior], float], likelihood: Likelihood
) -> LatentPosterior:
    """Coordinate search over the two shares, until neither changes."""
    moves: list[Callable[[LatentPosterior, float], LatentPosterior]] = [
        lambda found, share: replace(found, residual_share=share)
    ]
    if likelihood.name != "poisson":
        moves.insert(0, lambda found, share: replace(found, covariance_share=share))
    best, value = posterior, score(posterior) - _moved(posterior)
    for _ in range(_ROUNDS):
        before = value
        for move in moves:
            for candidate in [move(best, share) for share in SHARES]:
                found = score(candidate) - _moved(candidate)
                if found > value:
                    best, value = candidate, found
        if value == before:
            break
    return best


def _moved(posterior: LatentPosterior) -> float:
    """Nats that the shares must gain: 2 for each share other than 1."""
    return _WORTH * ((posterior.residual_share != 1.0) + (posterior.covariance_share != 1.0))


def _left_out(
    posterior: LatentPosterior, likelihood: Likelihood, X: AnyArray, y: Float, weights: Float
) -> tuple[Float, Float, Float]:
    """`LatentPosterior.parts` of each row for the fit without this row."""
    Q = posterior.contrasts
    r, rows = Q.shape[1], len(X)
    means, covariances, left = np.empty((rows, len(Q))), np.empty((rows, r, r)), np.empty(rows)
    edges = [*range(0, rows, max(1, _PANEL // r**2)), rows]
    for first, last in pairwise(edges):
        part = slice(first, last)
        f, S, left[part] = posterior.parts(X[part])
        w = weights[part]
        # The jitter ensures that the factor of a covariance near 0 exists.
        root = np.linalg.cholesky(S + (1e-12 * posterior.signal_variance) * np.eye(r))
        W = w[:, None, None] * (Q.T @ likelihood.curvature(f) @ Q)
        leverage, vectors = np.linalg.eigh(root.transpose(0, 2, 1) @ W @ root)
        axes = (root @ vectors) / np.sqrt(1.0 - np.clip(leverage, 0.0, _MOST_LEVERAGE))[:, None, :]
        # As a product of a matrix with its own transpose, so that no variance is negative.
        covariances[part] = axes @ axes.transpose(0, 2, 1)
        rho = w[:, None] * ((likelihood.mean(f) - y[part]) @ Q)
        means[part] = f + (covariances[part] @ rho[:, :, None])[:, :, 0] @ Q.T
    return means, covariances, left


def _own_variance(basis: Basis, X: AnyArray) -> Float:
    """Variance (b,), in units of k, that the other functions do not explain at points of the basis; 0 at other rows."""
    G = basis.features(X)
    diagonal = np.asarray(basis.kernel.diagonal(X), np.float64)
    own = np.zeros(len(X))
    at = np.flatnonzero(diagonal - np.einsum("ij,ij->i", G, G) <= _AT_A_POINT * diagonal)
    if len(at):
        # The coefficients of a point of the basis are 1 for its own function and 0 for the others.
        function = np.abs(solve_lower_t(basis.L, np.ascontiguousarray(G[at].T))).argmax(axis=0)
        inverse = solve_lower(basis.L, np.eye(len(basis)))
        own[at] = 1.0 / np.einsum("ij,ij->j", inverse, inverse)[function]
    return own


def _moved_apart(means: Float, covariances: Float, left: Float, own: Float) -> tuple[Float, Float, Float]:
    """Move the variance `own` (b,) from the covariances within the span to the variance outside the span."""
    at = np.flatnonzero(own)
    if len(at):
        values, vectors = np.linalg.eigh(covariances[at])
        values = np.maximum(values - own[at, None], 0.0)
        covariances[at] = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)
        left[at] = own[at]
    return means, covariances, left


def _log_likelihood(
    posterior: LatentPosterior, likelihood: Likelihood, parts: tuple[Float, Float, Float], y: Float, weights: Float
) -> float:
    mean, covariance = parts[0], posterior.shared(*parts[1:])
    if likelihood.name == "poisson":
        rate = np.maximum(mean_rate(mean[:, 0], covariance[:, 0, 0]), _TINY)
        return float(weights @ (y[:, 0] * np.log(rate) - rate - gammaln(y[:, 0] + 1.0)))
    p = np.maximum(averaged_probabilities(mean, covariance, posterior.contrasts), _TINY)
    indicators = np.concatenate([1.0 - y, y], axis=1) if likelihood.name == "bernoulli" else y
    return float(weights @ (indicators * np.log(p)).sum(axis=1))
