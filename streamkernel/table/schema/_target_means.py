"""Target means (Micci-Barreca 2001). A category c with weight ``n_c`` and mean target ``y_c`` becomes::

    e_c = (n_c y_c + k y) / (n_c + k),      k = s2_within / s2_between

y is the mean of all rows, and k the ratio of the variances within and between categories, by the method of moments of
a one-way layout (Searle, Casella & McCulloch 1992, section 3.6)::

    s2_within  = sum_c sum_{i in c} w_i (y_i - y_c)^2 / (N - C)
    s2_between = max(0, (sum_c n_c (y_c - y)^2 / (C - 1) - s2_within) / n_0),   n_0 = (N - sum_c n_c^2 / N) / (C - 1)

A category of few rows is thus near the mean of all. The rows of the fit themselves get the mean of the rows of the four
other folds (of five, by the number of the row): no row's own target is in its feature.
"""

from __future__ import annotations

import numpy as np

from streamkernel.type_aliases import Float


def shrunk(sums: Float, centre: Float) -> Float:
    """Means (C + 2, q) of categories, drawn to the mean of all rows, which is the last one.

    Parameters
    ----------
    sums : (C + 2, 1 + 2 q) of the categories, of the missing one, and of the rows of none, which count for the mean of
        all rows alone.
    centre : what the sums count from (q,).
    """
    q = (sums.shape[1] - 1) // 2
    total = float(sums[:, 0].sum())
    if total <= 0.0:
        return np.zeros((len(sums), q))
    overall = sums[:, 1 : 1 + q].sum(axis=0) / total
    means: Float = np.tile(overall, (len(sums), 1))
    n, s, squares = sums[:-1, :1], sums[:-1, 1 : 1 + q], sums[:-1, 1 + q :]
    there, known = n[:, 0] > 0.0, float(n.sum())
    count = int(there.sum())
    if count >= 2:
        own = np.divide(s, n, out=means[:-1].copy(), where=n > 0.0)
        within = np.maximum(squares - n * own**2, 0.0).sum(axis=0) / max(known - count, 1.0)
        n_0 = (known - float((n**2).sum()) / known) / (count - 1)
        spread = (n * (own - overall) ** 2).sum(axis=0) / (count - 1)
        between = np.maximum(spread - within, 0.0) / n_0
        # With k = within / between, both numerator and denominator times `between`: no division by 0.
        below = n * between + within
        weight = np.divide(n * between, below, out=np.zeros_like(below), where=below > 0.0)
        means[:-1] += weight * (own - overall)
    return means + centre
