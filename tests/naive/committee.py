"""Committee machines (card 6.1 to 6.3) from full covariances of all query points, with explicit inverses.

K, K_qm, K_qq are those of the prior (signal variance included); members are lists of rows; y (m, d).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from naive.dense import Array, Rows, columns_of

Posterior = tuple[Array, Array]


def member_rows(m: int, size: int) -> list[list[int]]:
    """Rows in their order, `size` in each member, what is left over in the last."""
    return [list(range(first, min(first + size, m))) for first in range(0, m, size)]


def member_posterior(K: Array, y: ArrayLike, noise: ArrayLike, K_qm: Array, K_qq: Array, rows: Rows) -> Posterior:
    """E(f^q|D^i) (q, d) and cov(f^q|D^i) (q, q) of the exact Gaussian process on some rows (card 5.1)."""
    J = list(rows)
    C = K[np.ix_(J, J)] + np.diag(np.broadcast_to(noise, len(K))[J])
    solved = np.linalg.solve(C, K_qm[:, J].T).T
    return solved @ columns_of(y)[J], K_qq - solved @ K_qm[:, J].T


def bayesian_committee(K_qq: Array, posteriors: Sequence[Posterior]) -> Posterior:
    """Tresp 2001, eqs. (8), (9), literally: C = -(M - 1) Sqq^-1 + sum cov_i^-1, E = C^-1 sum cov_i^-1 E_i."""
    precisions = [np.linalg.inv(covariance) for _, covariance in posteriors]
    C = -(len(posteriors) - 1) * np.linalg.inv(K_qq) + sum(precisions)
    weighted = sum(P @ mean for P, (mean, _) in zip(precisions, posteriors, strict=True))
    return np.linalg.solve(C, weighted), np.linalg.inv(C)


def committee_information(
    K_qq: Array, K_mq: Array, K: Array, y: ArrayLike, noise: ArrayLike, parts: Sequence[Rows]
) -> tuple[Array, Array]:
    """A = I + sum V Om^-1 V', c = sum V Om^-1 y, V = Lq^-1 S_qi, Om = S_ii - V'V + noise (card 6.1, 6.2)."""
    V = np.linalg.solve(np.linalg.cholesky(K_qq), K_mq.T)
    A, c = np.eye(len(K_qq)), np.zeros((len(K_qq), columns_of(y).shape[1]))
    for part in map(list, parts):
        Om = K[np.ix_(part, part)] - V[:, part].T @ V[:, part] + np.diag(np.broadcast_to(noise, len(K))[part])
        solved = np.linalg.solve(Om, V[:, part].T).T
        A, c = A + solved @ V[:, part].T, c + solved @ columns_of(y)[part]
    return A, c


def committee_moments(K_qq: Array, A: Array, c: Array) -> Posterior:
    """E = Lq A^-1 c, cov = Lq A^-1 Lq'."""
    L = np.linalg.cholesky(K_qq)
    return L @ np.linalg.solve(A, c), L @ np.linalg.solve(A, L.T)


def committee_kalman(
    K_qq: Array, K_mq: Array, K: Array, y: ArrayLike, noise: float, parts: Sequence[Rows]
) -> Posterior:
    """State (0, Sqq); H = S_iq Sqq^-1, S = HPH' + Om, Kg = PH'S^-1, mu += Kg (y - H mu), P -= Kg H P (card 6.1)."""
    mean, P = np.zeros((len(K_qq), columns_of(y).shape[1])), K_qq.copy()
    for part in map(list, parts):
        H = np.linalg.solve(K_qq, K_mq[part].T).T
        Om = K[np.ix_(part, part)] - H @ K_mq[part].T + noise * np.eye(len(part))
        gain = np.linalg.solve(H @ P @ H.T + Om, H @ P).T
        mean, P = mean + gain @ (columns_of(y)[part] - H @ mean), P - gain @ H @ P
    return mean, P


def combine_members(name: str, prior: Array, means: Array, variances: Array) -> Posterior:
    """Products of members (B, q, d), (B, q), as their papers print them; prior (q,) variances of f.

    poe, gpoe (weights made to sum to one), bcm, rbcm: precision sum b_i / v_i + (1 - sum b_i) / prior, the last term
    without poe and gpoe; mean = variance sum b_i m_i / v_i.
    """
    entropy = 0.5 * (np.log(prior) - np.log(variances))
    one = np.ones_like(variances)
    b = {"poe": one, "bcm": one, "gpoe": entropy / entropy.sum(axis=0), "rbcm": entropy}[name]
    precision = (b / variances).sum(axis=0)
    if name in ("bcm", "rbcm"):
        precision = precision + (1.0 - b.sum(axis=0)) / prior
    return (b[:, :, None] * means / variances[:, :, None]).sum(axis=0) / precision[:, None], 1.0 / precision


def generalised_robust_committee(shared: Posterior, means: Array, variances: Array) -> Posterior:
    """Liu et al. 2018: experts 2.. on the communication rows and their own; b_2 = 1, b_i = (log v_c - log v_i) / 2."""
    mean, variance = shared
    b = 0.5 * (np.log(variance) - np.log(variances))
    b[0] = 1.0
    precision = (b / variances).sum(axis=0) - (b.sum(axis=0) - 1.0) / variance
    weighted = (b[:, :, None] * means / variances[:, :, None]).sum(axis=0)
    weighted = weighted - ((b.sum(axis=0) - 1.0) / variance)[:, None] * mean
    return weighted / precision[:, None], 1.0 / precision


Derivatives = Callable[[Array], tuple[Array, Array, Array]]


def logistic_terms(y: Array) -> Derivatives:
    """Loss, E y and its slope at f, for y of 0 and 1."""

    def at(f: Array) -> tuple[Array, Array, Array]:
        p = 1.0 / (1.0 + np.exp(-f))
        return np.logaddexp(0.0, f) - y * f, p, p * (1.0 - p)

    return at


def poisson_terms(y: Array) -> Derivatives:
    """The same for counts, less log y!."""
    return lambda f: (np.exp(f) - y * f, np.exp(f), np.exp(f))


def laplace_mode(K: Array, y: Array, derivatives: Derivatives, centre: float = 0.0, weights: ArrayLike = 1.0) -> Array:
    """f that minimises (f - mu)'K^-1 (f - mu) / 2 + sum w loss, by Newton steps on w: f = mu + K w (card 5.2)."""
    w, u = np.zeros(len(y)), np.broadcast_to(weights, len(y))

    def cost(w: Array) -> float:
        return float(0.5 * w @ K @ w + (u * derivatives(centre + K @ w)[0]).sum())

    for _ in range(100):
        _, mean, slope = derivatives(centre + K @ w)
        step = np.linalg.solve(np.diag(u * slope) @ K + np.eye(len(y)), w - u * (y - mean))
        length = 1.0
        while cost(w - length * step) > cost(w) + 1e-13 * abs(cost(w)) and length > 1e-8:
            length /= 2.0
        w = w - length * step
        if np.abs(length * step).max() < 1e-13:
            break
    return centre + K @ w


def pseudo_targets(f: Array, y: Array, derivatives: Derivatives, weights: ArrayLike = 1.0) -> tuple[Array, Array]:
    """z = f + W^-1 (y - E y) and the noise W^-1 of each row (card 5.2)."""
    _, mean, slope = derivatives(f)
    return f + (y - mean) / slope, 1.0 / (np.broadcast_to(weights, len(y)) * slope)


def support_vector_weights(K: Array, t: Array, C: float) -> Array:
    """a (m,) that maximises e'a - (t a)'K(t a) / 2 in the box [0, C]: the SVM without a bias of its own."""
    Q = t[:, None] * K * t

    def dual(a: Array) -> tuple[float, Array]:
        return float(0.5 * a @ Q @ a - a.sum()), Q @ a - 1.0

    options = {"maxiter": 20000, "maxfun": 100000, "ftol": 1e-16, "gtol": 1e-11}
    found = minimize(
        dual, np.full(len(t), C / 2), jac=True, method="L-BFGS-B", bounds=[(0, C)] * len(t), options=options
    )
    return np.asarray(found.x)


def effective_degrees(K: Array, noise: float) -> float:
    """tr K (K + noise I)^-1."""
    return float(np.trace(np.linalg.solve(K + noise * np.eye(len(K)), K)))
