"""Combination of the predictions of committee members, separately for each query.

All members share a base: the prior, or, for `grbcm`, the posterior of the process given some rows that all members
have. At a query the base has mean ``mu`` and variance ``v``, member i has mean ``mu_i`` and variance ``v_i <= v``. The
member adds the precision ``e_i = v / v_i - 1 >= 0``, in units of the precision of the base, and has the weight
``b_i``::

    S = sum_i b_i        E = sum_i b_i e_i        N = sum_i b_i (1 + e_i) (mu_i - mu)
    mean = mu + N / P    variance = v / P

    poe      b_i = 1                     P = S + E       product of experts (Hinton 2002)
    gpoe     b_i = log(1 + e_i) / 2S     P = 1 + E       generalised PoE (Cao & Fleet 2014), weights made to sum to 1
    bcm      b_i = 1                     P = 1 + E       Tresp 2001, eqs. (8), (9) for one query point
    rbcm     b_i = log(1 + e_i) / 2      P = 1 + E       robust BCM (Deisenroth & Ng 2015)
    grbcm    b_i = log(1 + e_i) / 2      P = 1 + E       generalised robust BCM (Liu, Cai, Wang & Ong 2018): b_1 = 1

``log(1 + e_i) / 2`` is the entropy by which the member reduces that of the base. The products are those of the papers,
with the base cancelled: ``v^-1 P = sum_i b_i v_i^-1 + (1 - sum_i b_i) v^-1`` for the last three. All moments are of
the process f; the noise is added at the end (Liu et al. combine the densities of y).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class Combiner:
    """One row of the table above.

    Parameters
    ----------
    name : name of the row.
    entropy : True to weight members by the entropy by which they reduce that of the base.
    normalised : True to divide the weights by their sum.
    counts_base : True to count the base once; False counts it once per member.
    shares_rows : True if the base is the posterior given rows that all members share.
    """

    name: str
    entropy: bool = False
    normalised: bool = False
    counts_base: bool = True
    shares_rows: bool = False

    def weights(self, excess: Float) -> Float:
        """Weights b_i before they are normalised, for e_i of any shape."""
        return np.asarray(0.5 * np.log1p(excess)) if self.entropy else np.ones_like(excess)

    def combined(self, S: Float, E: Float, N: Float) -> tuple[Float, Float]:
        """P (q,) and ``N / P`` (q, d); 1 and 0 where every weight is 0."""
        positive = S > 0.0
        if self.normalised:
            share = np.divide(1.0, S, out=np.zeros_like(S), where=positive)
            E, N = E * share, N * share[:, None]
        P = 1.0 + E if self.counts_base else np.where(positive, S + E, 1.0)
        return P, N / P[:, None]


COMBINERS = {
    combiner.name: combiner
    for combiner in (
        Combiner("poe", counts_base=False),
        Combiner("gpoe", entropy=True, normalised=True),
        Combiner("bcm"),
        Combiner("rbcm", entropy=True),
        Combiner("grbcm", entropy=True, shares_rows=True),
    )
}


def combiner_of(name: str) -> Combiner:
    """The combiner with this name.

    Raises
    ------
    ParameterError
        No combiner has this name.
    """
    if name not in COMBINERS:
        raise ParameterError(f"combiner = {name!r} is not known; choose one of {', '.join(COMBINERS)}")
    return COMBINERS[name]
