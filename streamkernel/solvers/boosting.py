"""The formulas of AdaBoost, and what they promise.

A member with the error e under the masses D, of K classes (two: AdaBoost, Freund & Schapire 1997; more: SAMME, Zhu,
Zou, Rosset & Hastie 2009, whose weights are twice these)::

    a = 1/2 [ log((1 - e) / e) + log(K - 1) ]
    Z = e exp(a) + (1 - e) exp(-a)              2 sqrt(e (1 - e)) for two classes

The masses become ``D exp(a) / Z`` where it is wrong, ``D exp(-a) / Z`` elsewhere: wrong rows then have the mass
``(K - 1) / K``. A row that the vote gets wrong has ``sum of a over wrong members >= sum of a over right ones``, so that
the share of such rows is at most the product of all Z.
"""

from __future__ import annotations

import math

import numpy as np

from streamkernel.type_aliases import Float


def member_factor(error: float, classes: int) -> float:
    """a of a member with an error in (0, 1 - 1 / K)."""
    return 0.5 * (math.log((1.0 - error) / error) + math.log(classes - 1.0))


def mass_change(error: float, factor: float) -> float:
    """Z: the sum of all masses after a member."""
    return error * math.exp(factor) + (1.0 - error) * math.exp(-factor)


def training_bound(errors: Float, factors: Float) -> Float:
    """The largest share of wrong rows of the votes of the first 1, 2, ... members, (T,)."""
    changes = [mass_change(e, a) for e, a in zip(errors.tolist(), factors.tolist(), strict=True)]
    return np.asarray(np.minimum(np.cumprod(changes), 1.0))


def filtering_bound(error: float) -> float:
    """``3 e^2 - 2 e^3``: the largest error of the vote of three machines with errors of at most e (Schapire 1990)."""
    return error**2 * (3.0 - 2.0 * error)
