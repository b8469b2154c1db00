"""The compiled loop of sequential minimal optimisation: steps of two variables until a kernel row is missing.

With ``v = target - f``, a variable may rise if u < h, and fall if u > l. Each step is that of Fan, Chen & Lin 2005,
section 3 (WSS 2)::

    i = argmax {v_i : may rise}        j = argmax {(v_i - v_j)^2 / c_ij : may fall, v_j < v_i}
    c_ij = K_ii + K_jj - 2 K_ij        d = (v_i - v_j) / c_ij, cut at the boxes        u_i += d, u_j -= d

A tie goes to the lowest position. Without a constant there is no second variable: the step of i alone is
``d = v_i / K_ii``, and i has the largest ``v_i^2 / K_ii``.

The loop is here alone, because it is compiled: vectors of NumPy took 4 times as long for 2,000 rows. Like the kernels'
loops it has no ``fastmath``: the bits depend on the order of the rows only.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numba import types

from streamkernel.compiled_loops import CompiledLoop, source_version
from streamkernel.type_aliases import Untyped

# How a run of steps ended: a row of the kernel matrix is needed; no pair violates by more; as many steps as allowed.
NEEDED, SOLVED, COUNTED = 0, 1, 2
_LEAST_CURVATURE = 1e-12  # tau of libsvm: equal rows, and the two kinks of one row


def _loops(version: int) -> tuple[Untyped, Untyped]:
    """The two loops. `slots` are the places of kernel rows in `rows`, -1 for a row that is missing there."""

    def pair_steps(v, low, high, u, diagonal, rows, slots, counted, tolerance, most):  # type: ignore[no-untyped-def]
        """Steps in place; returns how it ended, and the row that is needed."""
        kinks, m = v.shape
        while version >= 0:
            top, bottom, ki, i = -np.inf, np.inf, -1, -1
            for k in range(kinks):
                for r in range(m):
                    value = v[k, r]
                    if value > top and u[k, r] < high[k, r]:
                        top, ki, i = value, k, r
                    if value < bottom and u[k, r] > low[k, r]:
                        bottom = value
            if not top - bottom > tolerance or i < 0 or bottom == np.inf:
                return SOLVED, -1
            if counted[0] >= most:
                return COUNTED, -1
            if slots[i] < 0:
                return NEEDED, i
            of_i, own = rows[slots[i]], diagonal[i]
            gain, kj, j, curvature = 0.0, -1, -1, 1.0
            for k in range(kinks):
                for r in range(m):
                    if u[k, r] > low[k, r]:
                        fall = top - v[k, r]
                        if fall > 0.0:
                            c = max(own + diagonal[r] - 2.0 * of_i[r], _LEAST_CURVATURE)
                            if fall * fall > gain * c:
                                gain, kj, j, curvature = fall * fall / c, k, r, c
            if slots[j] < 0:
                return NEEDED, j
            counted[0] += 1
            of_j = rows[slots[j]]
            d = (top - v[kj, j]) / curvature
            # Ends of boxes are met exactly: a variable is at an end or not, without a tolerance.
            room_i, room_j = high[ki, i] - u[ki, i], u[kj, j] - low[kj, j]
            length = min(d, room_i, room_j)
            u[ki, i] = high[ki, i] if length == room_i else u[ki, i] + length
            u[kj, j] = low[kj, j] if length == room_j else u[kj, j] - length
            for k in range(kinks):
                for r in range(m):
                    v[k, r] -= length * (of_i[r] - of_j[r])
        return SOLVED, -1

    def single_steps(v, low, high, u, diagonal, rows, slots, counted, tolerance, most):  # type: ignore[no-untyped-def]
        """The same without a constant: no violation is above half the tolerance."""
        kinks, m = v.shape
        while version >= 0:
            gain, ki, i = 0.0, -1, -1
            for k in range(kinks):
                for r in range(m):
                    value = v[k, r]
                    if (value > 0.0 and u[k, r] < high[k, r]) or (value < 0.0 and u[k, r] > low[k, r]):
                        c = max(diagonal[r], _LEAST_CURVATURE)
                        if abs(value) > 0.5 * tolerance and value * value > gain * c:
                            gain, ki, i = value * value / c, k, r
            if i < 0:
                return SOLVED, -1
            if counted[0] >= most:
                return COUNTED, -1
            if slots[i] < 0:
                return NEEDED, i
            counted[0] += 1
            of_i = rows[slots[i]]
            before = u[ki, i]
            after = before + v[ki, i] / max(diagonal[i], _LEAST_CURVATURE)
            u[ki, i] = min(max(after, low[ki, i]), high[ki, i])
            length = u[ki, i] - before
            for k in range(kinks):
                for r in range(m):
                    v[k, r] -= length * of_i[r]
        return SOLVED, -1

    return pair_steps, single_steps


_DTYPE = np.dtype(np.float64)
_matrix, _vector, _numbers = types.float64[:, ::1], types.float64[::1], types.int64[::1]
_SIGNATURE = types.UniTuple(types.int64, 2)(
    _matrix, _matrix, _matrix, _matrix, _vector, _matrix, _numbers, _numbers, types.float64, types.int64
)
_VERSION = source_version([Path(__file__)])
PAIR_STEP_LOOPS = tuple(CompiledLoop(loop, {_DTYPE: _SIGNATURE}, _VERSION) for loop in _loops(_VERSION))


def loop_of(intercept: bool) -> Untyped:
    """The loop of pairs, or without a constant that of single variables; compiled once in a process."""
    return PAIR_STEP_LOOPS[0 if intercept else 1].of(_DTYPE)
