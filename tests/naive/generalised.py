"""Generalised Gaussian processes: likelihoods, their minimisers and Laplace's approximation (card 5.2).

Targets are a vector: 0 and 1 ("bernoulli"), counts ("poisson"), class codes ("softmax"). f = K w + b, with a column of
w and a b for each class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad

from naive.dense import Array


@dataclass(frozen=True)
class Generalised:
    """w (m, c), b (c,), f (m, c), cost = -log p(y | f) + w'Kw / 2 (summed over classes)."""

    w: Array
    b: Array
    f: Array
    cost: float


def negative_log_likelihood(kind: str, y: ArrayLike, f: Array) -> float:
    """-sum log p(y_i | f_i), one row after another."""
    total = 0.0
    for target, values in zip(np.asarray(y).tolist(), f, strict=True):
        if kind == "bernoulli":
            total -= math.log(1 / (1 + math.exp(-values[0] if target else values[0])))
        elif kind == "poisson":
            total -= target * values[0] - math.exp(values[0]) - math.lgamma(target + 1)
        else:
            total -= math.log(math.exp(values[int(target)]) / sum(math.exp(value) for value in values))
    return total


def response_moments(kind: str, f: Array) -> tuple[Array, Array]:
    """b'(f) (m, c) and b''(f) (m, c, c): mean and covariance of y, or of its indicators."""
    e = np.exp(f)
    if kind == "poisson":
        return e, e[:, :, None]
    p = e / (1 + e) if kind == "bernoulli" else e / e.sum(axis=1, keepdims=True)
    if kind == "bernoulli":
        return p, (p * (1 - p))[:, :, None]
    return p, np.stack([np.diag(row) - np.outer(row, row) for row in p])


def indicators(kind: str, y: ArrayLike, classes: int) -> Array:
    """What b'(f) is compared with, (m, c)."""
    y = np.asarray(y)
    return np.eye(classes)[y] if kind == "softmax" else np.asarray(y, np.float64)[:, None]


def generalised(
    K: Array, y: ArrayLike, kind: str, *, classes: int = 1, intercept: bool = False, weights: ArrayLike | None = None
) -> Generalised:
    """Newton's method on all m c coefficients and c constants at once, halved while the cost grows."""
    m, c = len(K), classes
    rows = np.ones(m) if weights is None else np.asarray(weights, np.float64)
    Y = indicators(kind, y, c)
    # Columns of A: what f (m c,), row by row, is made of.
    A = np.kron(np.hstack([K, np.ones((m, 1))] if intercept else [K]), np.eye(c))
    penalty = np.zeros((A.shape[1], A.shape[1]))
    penalty[: m * c, : m * c] = np.kron(K, np.eye(c))
    x = np.zeros(A.shape[1])

    def cost(x: Array) -> float:
        f = (A @ x).reshape(m, c)
        values = [negative_log_likelihood(kind, [target], row[None]) for target, row in zip(y, f, strict=True)]
        return float(rows @ values + 0.5 * x @ penalty @ x)

    for _ in range(200):
        f = (A @ x).reshape(m, c)
        mean, curvature = response_moments(kind, f)
        W = np.zeros((m * c, m * c))
        for i in range(m):
            W[i * c : (i + 1) * c, i * c : (i + 1) * c] = rows[i] * curvature[i]
        gradient = A.T @ (rows[:, None] * (mean - Y)).ravel() + penalty @ x
        step = np.linalg.lstsq(A.T @ W @ A + penalty, gradient, rcond=1e-14)[0]
        length, before = 1.0, cost(x)
        while cost(x - length * step) > before and length > 1e-8:
            length /= 2
        if length <= 1e-8 or gradient @ step < 1e-20:
            break
        x = x - length * step
    w, b = x[: m * c].reshape(m, c), x[m * c :] if intercept else np.zeros(c)
    return Generalised(w, b, (A @ x).reshape(m, c), cost(x))


def laplace_posterior(
    K: Array, y: ArrayLike, kind: str, fit: Generalised, K_qm: Array, K_qq: Array
) -> tuple[Array, Array, float]:
    """Latent mean (q, c), covariance (q, c, c) and log evidence, all from matrices of m c x m c.

    cov f* = K_qq - K_qm (K + W^-1)^-1 K_mq, (K + W^-1)^-1 = (I + W K)^-1 W; log q(y) = -cost - log det(I + W K) / 2.
    """
    m, c = fit.f.shape
    curvature = response_moments(kind, fit.f)[1]
    W, wide = np.zeros((m * c, m * c)), np.kron(K, np.eye(c))
    for i in range(m):
        W[i * c : (i + 1) * c, i * c : (i + 1) * c] = curvature[i]
    B = np.eye(m * c) + W @ wide
    cross = np.kron(K_qm, np.eye(c))
    covariance = np.kron(K_qq, np.eye(c)) - cross @ np.linalg.solve(B, W) @ cross.T
    q = len(K_qm)
    blocks = np.stack([covariance[i * c : (i + 1) * c, i * c : (i + 1) * c] for i in range(q)])
    return K_qm @ fit.w + fit.b, blocks, float(-fit.cost - 0.5 * np.linalg.slogdet(B)[1])


def average_logistic(mean: float, variance: float) -> float:
    """E 1 / (1 + e^-f) for f ~ N(mean, variance), by adaptive quadrature."""
    if variance == 0.0:
        return 1 / (1 + math.exp(-mean))
    s = math.sqrt(variance)

    def integrand(z: float) -> float:
        f = mean + s * z
        logistic = 1 / (1 + math.exp(-f)) if f > 0 else math.exp(f) / (1 + math.exp(f))
        return logistic * math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)

    centre = -mean / s
    points = sorted({p for p in (centre, centre - 1 / s, centre + 1 / s, 0.0) if -12 < p < 12})
    return float(quad(integrand, -12, 12, points=points or None, limit=400, epsabs=1e-13, epsrel=1e-12)[0])
