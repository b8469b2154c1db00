"""Quadratic programs whose variables lie in boxes, by steps on pairs of variables."""

from __future__ import annotations

import numpy as np

from streamkernel.errors import NumericalError
from streamkernel.linalg.finite import require_finite
from streamkernel.linalg.pair_steps import loop_of
from streamkernel.type_aliases import Float

_MOST_STEPS = 1_000_000
_ENOUGH = 1e5  # times the tolerance: what is reached then may do
_RENEWALS = 10  # of the gradient, whose rounding the steps add up


def box_maximum(K: Float, linear: Float, low: Float, high: Float, tolerance: float) -> Float:
    """The u (b,) in ``[low, high]`` that maximises ``linear^T u - u^T K u / 2``.

    Each variable is the difference of two halves, ``u = a - c`` with a in ``[low, high] / 2``, c in its mirror image,
    and ``sum (a + c) = 0``: any u is one with c = -a. A step then moves two of the 2 b halves. Steps of one variable
    at a time took up to a hundred times as long, where a constant in K couples all variables.

    Parameters
    ----------
    K : (b, b) positive semi-definite matrix.
    linear, low, high : (b,) linear term and ends of the boxes, which hold 0.
    tolerance : largest difference of two derivatives whose halves may still be moved. Where a million steps do not
        reach it, or rounding keeps them from it, as with wide boxes, 1e5 times as much is enough.

    Raises
    ------
    NumericalError
        The steps do not reach that either.
    """
    require_finite(K, "the matrix of a quadratic program")
    b = len(K)
    mirrored = np.empty((2 * b, 2 * b))
    mirrored[:b, :b] = mirrored[b:, b:] = K
    np.negative(K, out=mirrored[:b, b:])
    mirrored[b:, :b] = mirrored[:b, b:]
    ends = np.ascontiguousarray(0.5 * np.concatenate([low, -high])[None])
    tops = np.ascontiguousarray(0.5 * np.concatenate([high, -low])[None])
    halves, slots, counted = np.zeros(ends.shape), np.arange(ends.size), np.zeros(1, np.int64)
    diagonal, steps = np.tile(np.diagonal(K), 2), loop_of(True)
    for number in range(_RENEWALS + 1):
        u = halves[0, :b] - halves[0, b:]
        slope = linear - K @ u
        v = np.concatenate([slope, -slope])[None]
        top, bottom = v[halves < tops].max(initial=-np.inf), v[halves > ends].min(initial=np.inf)
        last = number == _RENEWALS or counted[0] >= _MOST_STEPS
        if not top - bottom > tolerance * (_ENOUGH if last else 1.0):
            return np.asarray(u)
        if last:
            break
        steps(v, ends, tops, halves, diagonal, mirrored, slots, counted, tolerance, _MOST_STEPS)
    raise NumericalError(
        f"a quadratic program of {b} variables is not solved to {_ENOUGH * tolerance:g} after {int(counted[0])} steps; "
        "take a smaller C, or rows that are scaled"
    )
