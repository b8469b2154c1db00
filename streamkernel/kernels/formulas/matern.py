"""The Matern kernels of half-integer order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.kernels.formulas.formula_kernels import StationaryKernel
from streamkernel.kernels.loops.formula import Formula, Metric, Transform
from streamkernel.kernels.loops.functions import compiled_value, exponential, number
from streamkernel.kernels.loops.instructions import fused
from streamkernel.kernels.parameters import checked_number

# r is limited by `largest`: for an infinite one ``r exp(-r)`` would be inf * 0. Its kernel value is 0 anyway.


@compiled_value
def order_one_half(s, x, z, constants):  # type: ignore[no-untyped-def]  # Numba infers them
    factor, _, high, low, cut, _, _ = constants
    return exponential(np.sqrt(factor * s), high, low, cut)


@compiled_value
def order_three_halves(s, x, z, constants):  # type: ignore[no-untyped-def]  # Numba infers them
    factor, _, high, low, cut, _, largest = constants
    t = factor * s
    r = np.sqrt(largest if t > largest else t)
    e = exponential(r, high, low, cut)
    return fused(r, e, e)


@compiled_value
def order_five_halves(s, x, z, constants):  # type: ignore[no-untyped-def]  # Numba infers them
    factor, _, high, low, cut, third, largest = constants
    t = factor * s
    t = largest if t > largest else t
    r = np.sqrt(t)
    e = exponential(r, high, low, cut)
    return fused(fused(t, third, r), e, e)


# Smallest r in the denominator of exp(-r) / r. A gradient sums such slopes times differences of rows, and without a
# limit the largest product would cost the digits of all others. With it, the gradient by a log lengthscale of points
# nearer than this is wrong by less than their distance, and the kink of exp(-r) at a point is rounded off.
NEAREST = 1e-6


@compiled_value
def slope_of_one_half(s, x, z, constants):  # type: ignore[no-untyped-def]  # Numba infers them
    """``exp(-r) / r``, 0 where r = 0."""
    factor, _, high, low, cut, _, _ = constants
    r, zero, nearest = np.sqrt(factor * s), number(0.0, s), number(NEAREST, s)
    quotient = exponential(r, high, low, cut) / (nearest if r < nearest else r)
    return quotient if r > zero else zero


MATERN12 = Transform(order_one_half)  # the slope by t is infinite at 0
MATERN12_SLOPE = Transform(slope_of_one_half)
MATERN32 = Transform(order_three_halves, slope=lambda shape: 0.5)
MATERN52 = Transform(order_five_halves, slope=lambda shape: 1 / 6)
TRANSFORMS = {0.5: MATERN12, 1.5: MATERN32, 2.5: MATERN52}


@dataclass(frozen=True)
class Matern(StationaryKernel):
    """With ``r^2 = 2 nu sum_j ((x_j - z_j) / lengthscale_j)^2``::

        nu = 1/2:  k(x, z) = exp(-r)
        nu = 3/2:  k(x, z) = (1 + r) exp(-r)
        nu = 5/2:  k(x, z) = (1 + r + r^2 / 3) exp(-r)

    Parameters
    ----------
    lengthscale : float or one per feature
        In the units of the features.
    nu : 0.5, 1.5 or 2.5
        The functions are differentiable ``ceil(nu) - 1`` times.

    References
    ----------
    Rasmussen & Williams 2006, eq. (4.17).
    """

    nu: float = 1.5

    name: ClassVar[str] = "matern"
    transforms: ClassVar[tuple[Transform, ...]] = (*TRANSFORMS.values(), MATERN12_SLOPE)

    def __post_init__(self) -> None:
        super().__post_init__()
        nu = checked_number("nu", self.nu)
        if nu not in TRANSFORMS:
            raise ParameterError(f"nu = {self.nu!r} is no order we have; give 0.5, 1.5 or 2.5 (Gaussian is infinity)")
        object.__setattr__(self, "nu", nu)

    def formula(self, n_features: int) -> Formula:
        weights = self.weights(n_features)
        return Formula(Metric.SQUARED, TRANSFORMS[self.nu], weights, factor=2.0 * self.nu, shape=1.0 / 3.0)

    def slope(self, formula: Formula) -> tuple[Formula, float]:
        if self.nu == 0.5:
            return replace(formula, transform=MATERN12_SLOPE), formula.factor
        if self.nu == 1.5:
            return replace(formula, transform=MATERN12), formula.factor
        return replace(formula, transform=MATERN32), formula.factor / 3.0
