"""The effective number of independent rows of a fold, from sums.

Copies of a row, and rows of large weight, count as one error. If the distinct rows of a fold have the weights w_c, the
mean of independent values of equal variance s^2 has the variance ``s^2 / effective``::

    effective = (sum_c w_c)^2 / sum_c w_c^2

The sum of squares comes from weights W_j by q random groups of distinct rows, without bias:
``E sum_j (W_j - W / q)^2 = (1 - 1 / q) sum_c w_c^2``.
"""

from __future__ import annotations

import numpy as np

from streamkernel.table.parts.folds import Folds
from streamkernel.table.row_keys import Keys
from streamkernel.type_aliases import Float

GROUPS = 2048  # q: the effective number then has an error of 3 %


def group_weights(folds: Folds, keys: Keys, weights: Float) -> Float:
    """Sums (q,) of row weights by the groups of the rows with these keys."""
    return np.bincount(folds.groups(keys, GROUPS), weights, GROUPS).astype(np.float64, copy=False)


def effective_rows(weights: Float) -> Float:
    """Effective numbers (V,) of independent rows, from the weights (V, q) of the groups of each fold."""
    total, q = weights.sum(axis=1), weights.shape[1]
    squares = ((weights - total[:, None] / q) ** 2).sum(axis=1) * (q / (q - 1))
    effective: Float = np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0.0)
    return effective
