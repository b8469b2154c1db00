"""How many random candidates hold a good one.

The best of s independent draws has population quantile at least q with probability ``1 - q^s``, whatever the scores'
distribution, so that ::

    s = ceil(ln eps / ln q)                        independent draws: (.05, .95) -> 59, (.01, .98) -> 228
    s = min{ s : C(N - g, s) / C(N, s) <= eps }    s distinct ones of N rows, g = floor((1 - q) N) of them good

(Smola & Schoelkopf 2000, section 2.2; Popovici, Bengio & Thiran 2005, Propositions 1 and 2; ALGORITHMS 1.6). The
rank is what is guaranteed, not the value: how far the q quantile lies below the maximum depends on the tail of the
scores.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from streamkernel.kernels.parameters import checked_integer, checked_probability

__all__ = ["candidates_needed", "guaranteed_quantile"]

# ln of a probability that equals eps but for rounding is taken as equal.
_ROUNDING = 1e-12


def candidates_needed(eps: float, quantile: float, rows: int | None = None) -> int:
    """Smallest number of candidates whose best is, with probability 1 - eps, among the best 1 - quantile of all rows.

    Parameters
    ----------
    eps : probability of a pool without a good candidate, in (0, 1).
    quantile : q in (0, 1).
    rows : number of rows N that candidates are drawn from without replacement; None for independent draws.

    Returns
    -------
    int
        At most `rows`; all of them where floor((1 - q) N) = 0, as then only the best row is good enough.

    Raises
    ------
    ParameterError
        eps or quantile is not in (0, 1), or rows is no positive integer.
    """
    eps, quantile = checked_probability("eps", eps), checked_probability("quantile", quantile)
    if rows is None:
        exact = math.log(eps) / math.log(quantile)
        return max(1, math.ceil(exact * (1.0 - _ROUNDING)))
    rows = checked_integer("rows", rows)
    # As the decimals that they print as: 1 - 0.9 is a little less than a tenth, and floor would notice.
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


def guaranteed_quantile(eps: float, candidates: int) -> float:
    """``q = eps^(1/s)``: the quantile that the best of s independent candidates reaches with probability 1 - eps."""
    quantile: float = checked_probability("eps", eps) ** (1.0 / checked_integer("candidates", candidates))
    return quantile


def _log_missed(rows: int, good: int, draws: int) -> float:
    """``ln( C(N - g, s) / C(N, s) )``, which is symmetric in g and s, as a sum over the smaller of the two."""
    if draws > rows - good:
        return -math.inf
    few, many = sorted((good, draws))
    return float(np.log1p(-many / (rows - np.arange(few, dtype=np.float64))).sum())
