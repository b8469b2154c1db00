"""Logarithms of binomial coefficients.

::

    ln C(m, t) = -ln(m + 1) - ln B(m - t + 1, t + 1)        exact, B the Euler beta function
    ln C(m, t) <= t ln(e m / t)                             the relaxation that papers print
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln

from streamkernel.type_aliases import Float


def log_binomial(m: ArrayLike, t: ArrayLike) -> Float:
    """``ln C(m, t)`` for 0 <= t <= m; the shapes of m and t broadcast against each other.

    It uses ln B instead of three ln Gamma. These are of size m ln m each, and at m = 1e9 their difference keeps only
    seven digits of ln C(m, 1).
    """
    total, part = np.asarray(m, np.float64), np.asarray(t, np.float64)
    # C(m, 0) = C(m, m) = 1: rounding must not make a coefficient smaller than 1.
    logarithm: Float = betaln(total - part + 1.0, part + 1.0)
    return np.maximum(-np.log(total + 1.0) - logarithm, 0.0)


def relaxed_log_binomial(m: ArrayLike, t: ArrayLike) -> Float:
    """``t ln(e m / t) >= ln C(m, t)``; 0 for t = 0."""
    total, part = np.asarray(m, np.float64), np.asarray(t, np.float64)
    # With t = 0 the ratio does not matter: the product is 0.
    ratio = np.maximum(total, 1.0) / np.maximum(part, 1.0)
    product: Float = part * (1.0 + np.log(ratio))
    return product
