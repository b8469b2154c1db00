"""Number of random candidates that include a good one with given probability.

The best of s independent draws has population quantile at least q with probability ``1 - q^s``, for every continuous
distribution of the scores. Therefore ::

    s = ceil(ln eps / ln q)                        independent draws: (.05, .95) -> 59, (.01, .98) -> 228
    s = min{ s : C(N - g, s) / C(N, s) <= eps }    s distinct rows of N, of which g = floor((1 - q) N) are good

(Smola & Schoelkopf 2000, section 2.2; Popovici, Bengio & Thiran 2005, Propositions 1 and 2; ALGORITHMS 1.6). The
guarantee is on the rank, not on the value: the distance from the q quantile to the maximum depends on the tail of the
scores.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from streamkernel.kernels.parameters import checked_integer, checked_probability

# A probability counts as equal to eps if their logarithms differ by this much: the difference is rounding.
_ROUNDING = 1e-12


def candidates_needed(eps: float, quantile: float, rows: int | None = None) -> int:
    """Smallest number of candidates that include one of the best 1 - quantile of all rows with probability 1 - eps.

    Parameters
    ----------
    eps : probability of a pool without a good candidate, in (0, 1).
    quantile : q in (0, 1).
    rows : number of rows N from which candidates are drawn without replacement; None for independent draws.

    Returns
    -------
    int
        Number of candidates s, at most `rows`; it is `rows` if floor((1 - q) N) = 0, because then only the best row is
        good enough.

    Raises
    ------
    ParameterError
        eps or quantile is not in (0, 1), or rows is not a positive integer.
    """
    eps, quantile = checked_probability("eps", eps), checked_probability("quantile", quantile)
    if rows is None:
        exact = math.log(eps) / math.log(quantile)
        return max(1, math.ceil(exact * (1.0 - _ROUNDING)))
    rows = checked_integer("rows", rows)
    # Fractions of the printed decimals: in floating point 1 - 0.9 is less than a tenth, and floor would lose a row.
    good = math.floor((1 - Fraction(repr(quantile))) * rows)
    if good == 0:
        return rows
    limit = math.log(eps) + _ROUNDING
    low, high = 0, 1
    while _log_missed(rows, good, high) > limit:
        low, high = high, min(2 * high, rows)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _log_missed(rows, good, middle) > limit else (low, middle)
    return high


def _log_missed(rows: int, good: int, draws: int) -> float:
    """``ln( C(N - g, s) / C(N, s) )``, which is symmetric in g and s, as a sum over the smaller of the two."""
    if draws > rows - good:
        return -math.inf
    few, many = sorted((good, draws))
    return float(np.log1p(-many / (rows - np.arange(few, dtype=np.float64))).sum())
