"""Transforms that several kernels share. One that a single kernel has stands in the file of this kernel."""

from __future__ import annotations

from streamkernel.kernels._formula import Transform
from streamkernel.kernels._functions import LOG2E, compiled_value, exponential


@compiled_value
def decreasing(s, x, z, constants):  # type: ignore[no-untyped-def]  # Numba infers them
    # The factor is part of high + low, which saves a product for each value.
    _, _, high, low, cut, _, _ = constants
    return exponential(s, high, low, cut)


@compiled_value
def as_it_is(s, x, z, constants):  # type: ignore[no-untyped-def]  # Numba infers them
    return s


EXP = Transform(decreasing, slope=lambda shape: 1.0, rate=lambda factor: factor * LOG2E)
"""``exp(-t)``"""

POWER = Transform(as_it_is, power=True)
"""``t^shape``, the shape a whole number; with shape 1 and factor 1 the number of the metric itself"""
