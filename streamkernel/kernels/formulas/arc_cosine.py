"""The arc-cosine kernels: inner products of the hidden units of an infinitely wide network."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import float32
from numba.extending import overload

from streamkernel.errors import ParameterError
from streamkernel.kernels.formulas.formula_kernels import FormulaKernel, Pairs, squares_of
from streamkernel.kernels.loops.formula import Formula, Metric, Transform
from streamkernel.kernels.loops.functions import INLINED, compiled_value, number
from streamkernel.kernels.loops.instructions import fused
from streamkernel.kernels.parameters import checked_integer, checked_rows
from streamkernel.type_aliases import Float, Unchecked


def arctangent_of_small(r: Any, z: Any) -> Any:
    """``arctan r``, ``z = r^2``, for ``|r| <= tan(pi / 8)``."""
    raise TypeError("only compiled code calls this")


@overload(arctangent_of_small, jit_options=INLINED)
def arctangent_of_small_in(r, z):  # type: ignore[no-untyped-def]  # Numba infers them
    return arctangent_single if r == float32 else arctangent_double


# arctan r = r + r z P(z), P interpolates at Chebyshev points: relative error 2e-9 and 5e-18.


def arctangent_single(r, z):  # type: ignore[no-untyped-def]  # Numba infers them
    q = fused(np.float32(-0.06451928208121749), z, np.float32(0.10743731490791084))
    q = fused(q, z, np.float32(-0.1426395559798464))
    q = fused(q, z, np.float32(0.19999540483648964))
    q = fused(q, z, np.float32(-0.3333333176116852))
    return fused(q, r * z, r)


def arctangent_double(r, z):  # type: ignore[no-untyped-def]  # Numba infers them
    q = fused(-0.01917688711906226, z, 0.03923165829558719)
    q = fused(q, z, -0.0508544973794026)
    q = fused(q, z, 0.0585814891280221)
    q = fused(q, z, -0.06664511447381948)
    q = fused(q, z, 0.07692183190826087)
    q = fused(q, z, -0.09090904578123903)
    q = fused(q, z, 0.11111111015256361)
    q = fused(q, z, -0.14285714284666542)
    q = fused(q, z, 0.1999999999999552)
    q = fused(q, z, -0.3333333333333333)
    return fused(q, r * z, r)


@compiled_value
def arctangent(r):  # type: ignore[no-untyped-def]  # Numba infers them
    """``arctan r`` for r from 0 to 1; above tan(pi / 8) it is ``pi / 4 + arctan((r - 1) / (r + 1))``."""
    one, quarter = number(1.0, r), number(math.pi / 4, r)
    turned = (r - one) / (r + one)
    high = r > number(math.sqrt(2.0) - 1.0, r)
    small = turned if high else r
    angle = arctangent_of_small(small, small * small)
    return angle + quarter if high else angle


# Each order takes the smaller of theta and pi - theta, which is the exact one: 0 for equal rows and for opposite ones.


@compiled_value
def order_zero(s, x, z, constants):  # type: ignore[no-untyped-def]  # Numba infers them
    """``1 - theta / pi`` of ``s = tan^2(theta / 2)``, which may be infinite."""
    one = number(1.0, s)
    inverse = one / s
    obtuse = s > one
    share = number(2.0 / math.pi, s) * arctangent(np.sqrt(inverse if obtuse else s))
    return share if obtuse else one - share


@compiled_value
def order_one(s, x, z, constants):  # type: ignore[no-untyped-def]  # Numba infers them
    """``|x| |z| (sin theta + (pi - theta) cos theta) / pi`` of ``s = cos theta``."""
    one, two, pi = number(1.0, s), number(2.0, s), number(math.pi, s)
    size = abs(s)
    tangent = np.sqrt((one - size) / (one + size))  # of half the acute angle
    acute = two * arctangent(tangent)
    rest = acute if s < number(0.0, s) else pi - acute
    return x * z * (fused(rest, s, tangent * (one + size)) * number(1.0 / math.pi, s))


@compiled_value
def order_two(s, x, z, constants):  # type: ignore[no-untyped-def]  # Numba infers them
    """``(|x| |z|)^2 (3 sin theta cos theta + (pi - theta) (1 + 2 cos^2 theta)) / pi`` of ``s = cos theta``."""
    one, two, three, pi = number(1.0, s), number(2.0, s), number(3.0, s), number(math.pi, s)
    size = abs(s)
    tangent = np.sqrt((one - size) / (one + size))
    acute = two * arctangent(tangent)
    rest = acute if s < number(0.0, s) else pi - acute
    norms = x * z
    value = fused(rest, fused(two * s, s, one), three * s * (tangent * (one + size)))
    return norms * norms * (value * number(1.0 / math.pi, s))


# The slope of theta by its cosine is infinite at both ends, so that order 0 would keep half of the digits there. The
# other orders have finite slopes by the cosine, which takes one sum in place of two.
METRICS = {0: Metric.HALF_ANGLE, 1: Metric.COSINE, 2: Metric.COSINE}
TRANSFORMS = {0: Transform(order_zero), 1: Transform(order_one), 2: Transform(order_two)}


@dataclass(frozen=True)
class ArcCosine(FormulaKernel):
    """With ``cos theta = x.z / (|x| |z|)``::

        order 0:  k(x, z) = 1 - theta / pi
        order 1:  k(x, z) = |x| |z| (sin theta + (pi - theta) cos theta) / pi
        order 2:  k(x, z) = (|x| |z|)^2 (3 sin theta cos theta + (pi - theta) (1 + 2 cos^2 theta)) / pi

    It is ``2 E h(w.x) h(w.z)`` for w with independent standard normal entries and ``h(t) = max(t, 0)^order``: the
    kernel of a wide hidden layer of steps, ramps (ReLU) or squared ramps. Order 1 is in proportion to the norms of both
    rows and order 2 to their squares; order 0 is that of the angle alone.

    A row of zeros has ``cos theta = 0`` with every row: k is 0 for orders 1 and 2. For order 0 it is 1/2, which is what
    the expectation says for a step that is 1/2 at 0; also ``k(0, 0)`` is 1/2. All orders are positive semi-definite.

    Parameters
    ----------
    order : 0, 1 or 2

    References
    ----------
    Cho & Saul 2009, "Kernel methods for deep learning", eqs. (1), (3)-(6).
    """

    order: int = 1

    name: ClassVar[str] = "arc_cosine"
    transforms: ClassVar[tuple[Transform, ...]] = tuple(TRANSFORMS.values())

    def __post_init__(self) -> None:
        order = checked_integer("order", self.order, least=0)
        if order not in TRANSFORMS:
            raise ParameterError(f"order = {self.order!r} is out of range; give 0, 1 or 2")
        object.__setattr__(self, "order", order)

    def formula(self, n_features: int) -> Formula:
        return Formula(METRICS[self.order], TRANSFORMS[self.order], np.ones(n_features))

    def row_slopes(self, points: Float) -> Callable[[Float], Pairs]:
        """For orders 1 and 2, ``alpha = order^2 k_(order - 1)``.

        ``beta = (alpha x.z - order k) / |x|^2``, because ``x . dk/dx = order k`` (Euler, on homogeneous functions).
        """
        if self.order == 0:
            raise ParameterError(
                f"{self!r} has a kink at every direction of a point, so that its gradient tells little; take order 1"
            )
        prepared, lower = self.prepare(points), ArcCosine(self.order - 1).prepare(points)

        def slopes(X: Float) -> Pairs:
            alpha = self.order**2 * lower.block(X)
            beta = alpha * (X @ points.T)
            beta -= self.order * prepared.block(X)
            squares = squares_of(X)[:, None]
            return alpha, np.divide(beta, squares, out=np.zeros_like(beta), where=squares > 0.0)

        return slopes

    def diagonal(self, X: Unchecked) -> Float:
        rows = checked_rows(X)
        if self.order == 0:
            return np.where(np.any(rows != 0, axis=1), 1.0, 0.5)
        squares = squares_of(rows)
        return squares if self.order == 1 else 3.0 * squares**2
