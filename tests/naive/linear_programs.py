"""Linear programming machines, their whole program at once (ALGORITHMS 13.2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from naive.dense import Array


class Machine(NamedTuple):
    """The minimum of ``sum |a| + sum_i max(h_i (y_i - f_i), l_i (y_i - f_i))``, ``f = K a + b``, a, b and the duals."""

    objective: float
    a: Array
    b: float
    duals: Array


def linear_machine(K: Array, y: Array, low: Array, high: Array, intercept: bool = True) -> Machine:
    """The program of m rows and all columns of K (m, n); targets and ends of the boxes are (m,)."""
    m, n = K.shape
    # Variables a+, a-, b+, b- and the losses, which are above both of their lines.
    cost = np.concatenate([np.ones(2 * n), np.zeros(2), np.ones(m)])
    f = np.concatenate([K, -K, np.full((m, 1), float(intercept)), np.full((m, 1), -float(intercept))], axis=1)
    A = np.concatenate([np.concatenate([-end[:, None] * f, -np.eye(m)], axis=1) for end in (high, low)])
    found: Any = linprog(cost, A, np.concatenate([-high * y, -low * y]), method="highs")
    assert found.status == 0, found.message
    x, multipliers = found.x, -found.ineqlin.marginals
    duals = multipliers[:m] * high + multipliers[m:] * low
    return Machine(float(found.fun), x[:n] - x[n : 2 * n], float(x[2 * n] - x[2 * n + 1]), duals)


def hinge_machine(K: Array, t: Array, C: float, w: Array | None = None, intercept: bool = True) -> Machine:
    """The machine of labels t of -1 and 1."""
    box = C * (np.ones(len(t)) if w is None else w)
    return linear_machine(K, t, np.where(t > 0, 0.0, -box), np.where(t > 0, box, 0.0), intercept)
