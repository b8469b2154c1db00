"""Elementary functions in compiled code: 2^y, log2(1 + t), cos and sin, each exact to an ulp or two in its own dtype.

They are here because a call of the C library's functions would keep the loop around it from becoming vector code: about
ten times slower. All branches are selections of two computed values, for the same reason.
"""

from __future__ import annotations

import numpy as np
from numba import float32
from numba.extending import intrinsic, overload, register_jitable

from streamkernel.compiled_loops import OPTIONS
from streamkernel.kernels.loops.instructions import fused, scaled_by_power, split_power
from streamkernel.type_aliases import Fields, Untyped

# No reference counts: their atomic increments at every call would cost more than a tile with few features.
INNER: Fields = {**OPTIONS, "_nrt": False}

# log2(e) = LOG2E + LOG2E_TAIL, more digits than one float64 has.
LOG2E = 1.4426950408889634
LOG2E_TAIL = 2.0355273740931033e-17

# Marks a function of scalars that loops call for each entry. It must become part of the loop: a loop that calls a
# function is not vector code.
INLINED: Fields = {**INNER, "forceinline": True}
compiled_value = register_jitable(**INLINED)


@intrinsic
def number(typing: Untyped, value: Untyped, like: Untyped) -> Untyped:
    """A constant in the dtype of `like`; a plain literal would turn a float32 expression into a float64 one."""

    def generate(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
        return context.cast(builder, values[0], signature.args[0], signature.return_type)

    return like(value, like), generate


def exponential(s: Untyped, high: Untyped, low: Untyped, cut: Untyped) -> Untyped:
    """``2^(s (high + low))`` for an exponent <= 0; 0 for s >= cut, where the result is below the normal numbers."""
    raise TypeError("only compiled code calls this")


@overload(exponential, jit_options=INLINED)
def exponential_of(s, high, low, cut):  # type: ignore[no-untyped-def]  # Numba infers them
    return exponential_single if s == float32 else exponential_double


# The polynomials need only 24 and 53 bits: float32 has its own, of half the terms.
# 2^y = 2^k 2^r, k = round(y) taken from the lowest bits of y + magic, r = y - k in [-1/2, 1/2]. The polynomials of
# 2^r are near-minimax (Lawson's iteration in extended precision): relative error 4e-9 and 8e-18, exactly 1 at 0.


def exponential_single(s, high, low, cut):  # type: ignore[no-untyped-def]  # Numba infers them
    magic = np.float32(12582912.0)  # 1.5 2^23
    shifted = fused(s, high, magic)
    r = fused(s, low, fused(s, high, magic - shifted))
    q = np.float32(0.0001546971717670186)
    q = fused(q, r, np.float32(0.0013390866863407917))
    q = fused(q, r, np.float32(0.009618030826868655))
    q = fused(q, r, np.float32(0.055503571054728786))
    q = fused(q, r, np.float32(0.2402265108386363))
    q = fused(q, r, np.float32(0.6931471880289614))
    q = fused(q, r, np.float32(1.0))
    return np.float32(0.0) if s >= cut else scaled_by_power(q, shifted)


def exponential_double(s, high, low, cut):  # type: ignore[no-untyped-def]  # Numba infers them
    magic = 6755399441055744.0  # 1.5 2^52
    shifted = fused(s, high, magic)
    r = fused(s, low, fused(s, high, magic - shifted))
    q = 4.463851498285265e-10
    q = fused(q, r, 7.072911921480511e-09)
    q = fused(q, r, 1.0178006083847267e-07)
    q = fused(q, r, 1.3215440646385704e-06)
    q = fused(q, r, 1.5252733955375667e-05)
    q = fused(q, r, 0.0001540353044566646)
    q = fused(q, r, 0.0013333558146302236)
    q = fused(q, r, 0.009618129107603858)
    q = fused(q, r, 0.055504108664821965)
    q = fused(q, r, 0.24022650695910105)
    q = fused(q, r, 0.6931471805599453)
    q = fused(q, r, 1.0)
    return 0.0 if s >= cut else scaled_by_power(q, shifted)


def logarithm(t: Untyped) -> Untyped:
    """``log2(1 + t)`` for t >= 0 below the largest power of two."""
    raise TypeError("only compiled code calls this")


@overload(logarithm, jit_options=INLINED)
def logarithm_of(t):  # type: ignore[no-untyped-def]  # Numba infers them
    return logarithm_single if t == float32 else logarithm_double


# 1 + t + error = 2^k (1 + f), 1 + f in [sqrt 1/2, sqrt 2]; log2(1 + f) = g P(g^2), g = f / (2 + f), P near-minimax.


def logarithm_single(t):  # type: ignore[no-untyped-def]  # Numba infers them
    one = np.float32(1.0)
    whole = one + t
    error = t - (whole - one) if t < one else one - (whole - t)
    k, mantissa, inverse = split_power(whole)
    f = fused(error, inverse, mantissa - one)
    g = f / (np.float32(2.0) + f)
    z = g * g
    q = fused(np.float32(0.4317483081870034), z, np.float32(0.5767138351130098))
    q = fused(q, z, np.float32(0.9617988537011853))
    q = fused(q, z, np.float32(2.885390079779014))
    return fused(q, g, k)


def logarithm_double(t):  # type: ignore[no-untyped-def]  # Numba infers them
    whole = 1.0 + t
    error = t - (whole - 1.0) if t < 1.0 else 1.0 - (whole - t)
    k, mantissa, inverse = split_power(whole)
    f = fused(error, inverse, mantissa - 1.0)
    g = f / (2.0 + f)
    z = g * g
    q = fused(0.2137423436756529, z, 0.22090545442104045)
    q = fused(q, z, 0.2623346152012654)
    q = fused(q, z, 0.3205985307137128)
    q = fused(q, z, 0.4121985858722346)
    q = fused(q, z, 0.5770780163454169)
    q = fused(q, z, 0.9617966939259899)
    q = fused(q, z, 2.8853900817779268)
    return fused(q, g, k)


# Up to this number of turns the nearest whole number of turns is exact, and the remainder of x has all its digits.
MOST_TURNS = 2.0**48


@compiled_value
def cosine_and_sine(x, period, inverse, turns):  # type: ignore[no-untyped-def]  # Numba infers them
    """``cos(2 pi x / period)`` and the sine, in float64, each within 1.5 ulp, for at most MOST_TURNS turns.

    `inverse` is 1 / period, rounded; `turns` is ``x inverse``. The remainder, x minus whole turns, is exact. It is
    divided with twice the digits, so that the relative error stays small near the zeros, too.
    """
    magic = 6755399441055744.0  # 1.5 2^52
    rest = fused(-((turns + magic) - magic), period, x)
    t = rest * inverse
    tail = fused(-t, period, rest) * inverse
    # t = k / 4 + f: a quarter k of the circle, and f in [-1/8, 1/8], which is exact.
    k = (4.0 * t + magic) - magic
    f = fused(-0.25, k, t)
    z = f * f
    # sin(2 pi f) = 2 pi (f + tail) + f^3 P(f^2) and cos(2 pi f) = 1 + f^2 Q(f^2), near-minimax: 2e-17 and 2e-17.
    q = 3.7863999728311555
    q = fused(q, z, -15.09405300801843)
    q = fused(q, z, 42.05868916660875)
    q = fused(q, z, -76.70585973555119)
    q = fused(q, z, 81.60524927605158)
    q = fused(q, z, -41.341702240399755)
    whole = f * 6.283185307179586
    low = fused(f, 2.4492935982947064e-16, fused(f, 6.283185307179586, -whole))
    sine = whole + fused(q, z * f, fused(tail, 6.283185307179586, low))
    q = -1.6990191035198574
    q = fused(q, z, 7.903206254195357)
    q = fused(q, z, -26.426253265343973)
    q = fused(q, z, 60.24464135262532)
    q = fused(q, z, -85.45681720664355)
    q = fused(q, z, 64.93939402266824)
    q = fused(q, z, -19.739208802178716)
    cosine = fused(q, z, fused(-6.283185307179586 * sine, tail, 1.0))
    odd = abs(k) == 1.0
    c, s = sine if odd else cosine, cosine if odd else sine
    # From a quarter to three quarters the cosine is below 0, in the lower half the sine.
    return -c if k == 1.0 or abs(k) == 2.0 else c, -s if k == -1.0 or abs(k) == 2.0 else s
