"""Evidences of Gaussian processes and their slopes (card 5.1, 10.1, 10.2): dense, from the definitions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from naive.dense import Array, columns_of


def log_normal(S: Array, Y: ArrayLike) -> float:
    """Sum over the columns of Y of log N(y; 0, S)."""
    Y = columns_of(Y)
    m, d = Y.shape
    quadratic = float(np.sum(Y * np.linalg.solve(S, Y)))
    return -0.5 * (d * (m * math.log(2 * math.pi) + float(np.linalg.slogdet(S)[1])) + quadratic)


def approximated(K_mI: Array, K_II: Array) -> Array:
    """Ktilde = K_mI K_II^-1 K_Im."""
    return np.asarray(K_mI @ np.linalg.lstsq(K_II, K_mI.T, rcond=1e-15)[0])


def exact_evidence(K: Array, Y: ArrayLike, signal: float, noise: float) -> float:
    """log N(y; 0, s K + s2 I)."""
    return log_normal(signal * K + noise * np.eye(len(K)), Y)


def dtc_evidence(K_mI: Array, K_II: Array, Y: ArrayLike, signal: float, noise: float) -> float:
    """log N(y; 0, s Ktilde + s2 I)."""
    return log_normal(signal * approximated(K_mI, K_II) + noise * np.eye(len(K_mI)), Y)


def vfe_bound(K_mI: Array, K_II: Array, k_mm: Array, Y: ArrayLike, signal: float, noise: float) -> float:
    """DTC evidence - s tr(K - Ktilde) / (2 s2) for each target: at most the exact evidence (Titsias 2009, eq. (9))."""
    left = float(np.sum(k_mm - np.diag(approximated(K_mI, K_II))))
    return dtc_evidence(K_mI, K_II, Y, signal, noise) - columns_of(Y).shape[1] * signal * left / (2 * noise)


def fitc_evidence(K_mI: Array, K_II: Array, k_mm: Array, Y: ArrayLike, signal: float, noise: float) -> float:
    """log N(y; 0, s Ktilde + s diag(K - Ktilde) + s2 I) (Snelson & Ghahramani 2006, eq. (9))."""
    Q = approximated(K_mI, K_II)
    return log_normal(signal * (Q + np.diag(k_mm - np.diag(Q))) + noise * np.eye(len(Q)), Y)


def slopes(f: Callable[[Array], float], at: ArrayLike, step: float = 1e-4) -> Array:
    """Gradient by central differences of fourth order, coordinate by coordinate."""
    x = np.asarray(at, dtype=np.float64)
    moves = step * np.eye(len(x))
    return np.array([(8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * step) for h in moves])
