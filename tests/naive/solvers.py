"""Ridge regression and Gaussian processes (card 2.8, 5.1, 10.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from naive.dense import Array, columns_of, whitened_features


@dataclass(frozen=True)
class Ridge:
    """f(x) = k(x, I) alpha + b: alpha (n, d), b (d,), fit (m, d), RSS per target, edf = tr hat, GCV per target."""

    alpha: Array
    intercept: Array
    fitted: Array
    rss: Array
    edf: float
    gcv: Array

    def predict(self, K_qI: Array) -> Array:
        return K_qI @ self.alpha + self.intercept


def reduced_ridge(
    K_mI: Array,
    K_II: Array,
    Y: ArrayLike,
    rho: float,
    *,
    intercept: bool = False,
    weights: ArrayLike | None = None,
    raw: bool = True,
) -> Ridge:
    """alpha = (K_mI'W K_mI + rho K_II)^+ K_mI'W Y (card 2.8), the minimiser of |Y - K_mI a|_W^2 + rho tr a'K_II a.

    intercept: b is not penalised: centre Y and the columns of K_mI by their (weighted) means. raw=False takes the
    same minimiser in whitened coordinates, a = U l^-1/2 b: for K_II too ill conditioned for the formula (cond > 1e6).
    H: fitted = H Y, H = K A^+ K'W (+ 1 w'/sum w);  edf = tr H;  GCV = m RSS/(m - edf)^2, m the sum of the weights.
    """
    Y, m = columns_of(Y), len(K_mI)
    w = np.ones(m) if weights is None else np.asarray(weights, dtype=np.float64)
    mean = np.outer(np.ones(m), w / w.sum()) if intercept else np.zeros((m, m))
    Kc = K_mI - mean @ K_mI
    P = np.eye(len(K_II)) if raw else whitened_features(np.eye(len(K_II)), K_II)
    Q = Kc @ P
    inverse = P @ np.linalg.pinv(Q.T @ (w[:, None] * Q) + rho * P.T @ K_II @ P, rcond=1e-15, hermitian=True) @ P.T
    smoother = inverse @ (Kc * w[:, None]).T
    alpha, hat = smoother @ (Y - mean @ Y), Kc @ smoother + mean
    b = (mean @ (Y - K_mI @ alpha))[0]
    rss, edf = (w[:, None] * (Y - hat @ Y) ** 2).sum(axis=0), float(np.trace(hat))
    return Ridge(alpha, b, hat @ Y, rss, edf, w.sum() * rss / (w.sum() - edf) ** 2)


def kernel_ridge(K: Array, Y: ArrayLike, rho: float, *, intercept: bool = False) -> tuple[Array, Array]:
    """[K + rho I, 1; 1', 0] [alpha; b] = [Y; 0] (without intercept (K + rho I) alpha = Y, b = 0): exact, n = m."""
    Y, m = columns_of(Y), len(K)
    if not intercept:
        return np.asarray(np.linalg.solve(K + rho * np.eye(m), Y), np.float64), np.zeros(Y.shape[1])
    bordered = np.block([[K + rho * np.eye(m), np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
    solution = np.linalg.solve(bordered, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return solution[:m], solution[m]


def gaussian_process(K: Array, y: Array, noise: float, K_qm: Array, k_qq: Array) -> tuple[Array, Array, float]:
    """Mean K_qm w, variance k_qq - diag K_qm (K + s2 I)^-1 K_mq, log evidence (card 5.1); K = Ktilde: SoR (10.1)."""
    A = K + noise * np.eye(len(K))
    w = np.linalg.solve(A, y)
    evidence = -0.5 * (len(y) * math.log(2 * math.pi) + np.linalg.slogdet(A)[1] + y @ w)
    return K_qm @ w, k_qq - np.einsum("qm,mq->q", K_qm, np.linalg.solve(A, K_qm.T)), float(evidence)
