"""Random numbers by their position, with the same bits on every processor.

A stream is a sequence of 64-bit words; word i is a function of (seed, stream, i) alone, so that any part of it is made
without the rest::

    word i = word i mod 4 of Philox4x64-10 with key (seed, stream) and counter i div 4        (Salmon et al. 2011)

Words become numbers by +, -, *, /, square roots and whole numbers alone: IEEE 754 rounds each of these in one way. A
library's sine and logarithm differ in the last digit from processor to processor, and so do fused products, which
NumPy's operations on arrays never are. Hence cosine and logarithm are sums of their series here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamkernel.type_aliases import Float

Words = NDArray[np.uint64]

_PER_COUNTER = 4  # words
_ROOT_HALF, _LOG_2 = 0.7071067811865476, 0.6931471805599453


class Stream:
    """The words of a stream from word `first` on, taken in order."""

    def __init__(self, seed: int, stream: int, first: int) -> None:
        key = np.array([seed, stream], dtype=np.uint64)
        # NumPy adds 1 to the counter before it makes words.
        bits = np.random.Philox(key=key, counter=first // _PER_COUNTER)
        # The same words as of `random_raw`, which holds the interpreter's lock while it makes them.
        self._generator = np.random.Generator(bits)
        self.take(first % _PER_COUNTER)

    def take(self, count: int) -> Words:
        """The next words (count,)."""
        return self._generator.integers(0, 2**64, count, np.uint64)


def uniforms(words: Words, digits: int = 53) -> Float:
    """Numbers (b,) in [0, 1): multiples of ``2^-digits``, so that 24 digits are exact in single precision."""
    return (words >> np.uint64(64 - digits)).astype(np.float64) * math.ldexp(1.0, -digits)


def choices(words: Words, count: int) -> NDArray[np.int64]:
    """Whole numbers (b,) from 0 to ``count - 1``, for a count of at most 2^31."""
    return (((words >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)).astype(np.int64)


def normals(first: Words, second: Words) -> Float:
    """Standard normal numbers (b,) of two words each (Box & Muller 1958): ``sqrt(-2 log u) cos(2 pi v)``."""
    u = ((first >> np.uint64(11)) + np.uint64(1)).astype(np.float64) * math.ldexp(1.0, -53)  # in (0, 1]
    # cos(2 pi v) = -cos(pi (2 v - 1)); v is uniform, so that the sign does not matter.
    return np.sqrt(-2.0 * logarithms(u)) * cosines(2.0 * uniforms(second) - 1.0)


def _coefficients(terms: int) -> list[float]:
    """Of ``cos(pi v)`` in powers of v^2: ``(-1)^k pi^2k / (2k)!``."""
    found, power = [], 1.0
    for k in range(terms):
        found.append(power / math.factorial(2 * k) * (-1) ** k)
        power *= math.pi * math.pi
    return found


_COSINE = _coefficients(16)  # the first term that is left out is below 1e-18 for |v| <= 1


def cosines(v: Float) -> Float:
    """``cos(pi v)`` (b,) for v in [-1, 1], to some 1e-15."""
    square = v * v
    total = np.full_like(square, _COSINE[-1])
    for coefficient in reversed(_COSINE[:-1]):
        total *= square
        total += coefficient
    return total


def logarithms(u: Float) -> Float:
    """``log u`` (b,) for u > 0: ``e log 2 + 2 artanh((f - 1) / (f + 1))`` where ``u = f 2^e``, f near 1."""
    f, e = np.frexp(u)
    low = f < _ROOT_HALF
    f = np.where(low, 2.0 * f, f)
    z = (f - 1.0) / (f + 1.0)
    square = z * z
    # |z| <= .172: the first term that is left out is below 1e-18.
    total = np.full_like(square, 1.0 / 23.0)
    for k in range(21, 0, -2):
        total *= square
        total += 1.0 / k
    return (e - low) * _LOG_2 + 2.0 * z * total
