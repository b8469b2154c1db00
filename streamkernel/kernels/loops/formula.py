"""Formulas of kernels, as the compiled loops read them: a metric of two rows, and a transform of its values.

The transforms that several kernels share are here; one that a single kernel has stands in the file of this kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from streamkernel.kernels.loops.functions import LOG2E, compiled_value, exponential
from streamkernel.type_aliases import Float


class Metric(IntEnum):
    """Number s of two rows x and z, with weights w_j of the features; the loops have one branch for each."""

    SQUARED = 0  # sum_j w_j^2 (x_j - z_j)^2
    ABSOLUTE = 1  # sum_j w_j |x_j - z_j|
    INNER = 2  # sum_j x_j z_j
    EQUAL_SQUARED = 3  # sum_j (x_j - z_j)^2: SQUARED whose equal weights are in the factor of the formula
    COSINE = 4  # c = sum_j x_j z_j / (|x| |z|), between -1 and 1; 0 for a row of zeros
    HALF_ANGLE = 5  # tan^2(theta / 2), cos theta = c: it keeps the digits of theta near 0 and near pi
    DIFFERENT = 6  # sum_j w_j [x_j != z_j]

    @property
    def is_angle(self) -> bool:
        """Whether the metric depends on the directions of the rows only; the transform then knows their norms."""
        return self in (Metric.COSINE, Metric.HALF_ANGLE)


@dataclass(frozen=True, eq=False)
class Transform:
    """Kernel value of a number s of the metric. Each transform is compiled on its own, so that the loops know none.

    Attributes
    ----------
    value : ``value(s, x, z, constants)``, a `functions.compiled_value`. x, z are the norms of the two rows, which only
        an angle has; constants are (factor, offset, high, low, cut, shape, largest) of `prepared.constants`.
    slope : ``slope(shape)``, the largest |dk/dt| for ``t = factor s``; None where it is infinite or not known. Squared
        distances may come from inner products only where there is one.
    rate : ``rate(factor)``, such that ``exponential`` is ``2^(-rate s)``.
    largest : limits of t in float32 and float64, above which the kernel value is 0 or as good as 0.
    power : whether the whole tile is raised to a whole power, the shape, before `value` is called.
    """

    value: Callable[..., Any]
    slope: Callable[[float], float] | None = None
    rate: Callable[[float], float] = lambda factor: LOG2E
    largest: tuple[float, float] = (1e4, 1e6)
    power: bool = False


@dataclass(frozen=True, slots=True)
class Formula:
    """Formula of a kernel for the loops: ``k(x, z) = transform(factor * metric(x, z) + offset)``.

    `weights` (p,) float64 are the w_j of the metric; ones for inner products and angles.
    """

    metric: Metric
    transform: Transform
    weights: Float
    factor: float = 1.0
    offset: float = 0.0
    shape: float = 1.0


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
