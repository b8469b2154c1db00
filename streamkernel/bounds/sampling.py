"""Bounds on the mean of a fixed population from a uniform sample without replacement.

A population ``xi_1 .. xi_m`` in an interval of length b has mean S_m. A uniform sample of m' of them, without
replacement, has mean S_m'. For any eps > 0::

    Pr{ S_m - S_m' >= eps } <= exp( -2 m' eps^2 / (rho b^2) ),    the same for S_m' - S_m, twice it for |S_m - S_m'|
    rho = 1 - (m' - 1) / m                                        Hoeffding-Serfling
    rho = (1 - m' / m) (1 + 1 / m')    for m' > m / 2             Bardenet-Maillard, smaller there

(Serfling 1974, Corollary 1.1; Bardenet & Maillard 2015, Corollary 2.5; ALGORITHMS 1.7). Smola & Schoelkopf 2000 print
rho = 1 - m'/m in the exponent of Corollary 3. That holds for independent xi, but not for a fixed population:
(1, 0, 0, 0) with m' = 3 has Pr{ S_m - S_m' >= 1/4 } = 1/4, and that exponent would promise 0.223.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_number, checked_probability

Rate = Callable[[int, int], float]
"""The factor rho of the exponent, for m rows and m' sampled ones."""


def serfling(rows: int, sample: int) -> float:
    """``rho = 1 - (m' - 1) / m`` (Serfling 1974, Corollary 1.1)."""
    return (rows - sample + 1) / rows


def bardenet_maillard(rows: int, sample: int) -> float:
    """``rho = (1 - m' / m) (1 + 1 / m')`` for m' > m / 2, else Serfling's (Bardenet & Maillard 2015, Corollary 2.5)."""
    if 2 * sample <= rows:
        return serfling(rows, sample)
    return (1.0 - sample / rows) * (1.0 + 1.0 / sample)


def _smaller(rows: int, sample: int) -> float:
    return min(serfling(rows, sample), bardenet_maillard(rows, sample))


def deviation_tail(
    deviation: float, rows: int, sample: int, width: float, *, two_sided: bool = False, rate: Rate = _smaller
) -> float:
    """``exp(-2 m' eps^2 / (rho b^2))``: bounds the probability of a deviation of at least eps.

    Parameters
    ----------
    deviation : eps, deviation of the sample's mean from the population's; at 0 or below, the bound is 1.
    rows, sample : m and m' <= m.
    width : length b of an interval that contains the whole population.
    two_sided : whether to bound a deviation in either direction, which doubles the bound.
    rate : function that gives rho: `serfling` or `bardenet_maillard`; by default the smaller of the two.

    Raises
    ------
    ParameterError
        The sample is larger than the population, or the width is negative.
    """
    rows, sample = _checked_sample(rows, sample)
    spread = rate(rows, sample) * checked_number("width", width, zero=True) ** 2
    if deviation <= 0.0:
        return 1.0
    # If the sample contains all rows, or the population has one value only, the deviation is 0.
    one = math.exp(-2.0 * sample * deviation**2 / spread) if spread > 0.0 else 0.0
    return min(1.0, 2.0 * one) if two_sided else one


def deviation_radius(
    delta: float, rows: int, sample: int, width: float, *, two_sided: bool = False, rate: Rate = _smaller
) -> float:
    """``eps = b sqrt( rho ln(1/delta) / (2 m') )``: a deviation exceeds it with probability at most delta.

    Two-sided with ln(2/delta). Parameters and errors are those of `deviation_tail`; delta is in (0, 1).
    """
    rows, sample = _checked_sample(rows, sample)
    surprise = math.log((2.0 if two_sided else 1.0) / checked_probability("delta", delta))
    return checked_number("width", width, zero=True) * math.sqrt(rate(rows, sample) * surprise / (2.0 * sample))


def _checked_sample(rows: int, sample: int) -> tuple[int, int]:
    rows, sample = checked_integer("rows", rows), checked_integer("sample", sample)
    if sample > rows:
        raise ParameterError(f"a sample of {sample} of {rows} rows has duplicates; give one without replacement")
    return rows, sample
