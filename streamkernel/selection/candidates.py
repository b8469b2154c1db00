"""How many candidates make it likely that one of them is good (Smola & Schoelkopf 2000, section 2.2)."""

from __future__ import annotations

import math

from streamkernel.errors import ParameterError

__all__ = ["candidates_needed"]


def candidates_needed(eps: float, quantile: float, rows: int | None = None) -> int:
    """Least s such that the best of s random candidates is among the best ``1 - quantile`` but with probability eps.

    ``quantile^s <= eps`` for draws from a distribution, whatever it is; without replacement from `rows` rows, of which
    ``g = floor((1 - quantile) rows)`` are good, exactly::

        C(rows - g, s) / C(rows, s) <= eps

    Parameters
    ----------
    eps : probability of missing, in (0, 1).
    quantile : in (0, 1).
    rows : number of rows, or None for infinitely many.

    Raises
    ------
    ParameterError
        A probability outside (0, 1).
    """
    for name, value in (("eps", eps), ("quantile", quantile)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < 1.0:
            raise ParameterError(f"{name} must be a number between 0 and 1, not {value!r}")
    endless = math.ceil(math.log(eps) / math.log(quantile))
    if rows is None:
        return endless
    # A hair over, so that 0.05 * 1000, which is not 50 in binary, is not rounded down to 49 good ones.
    good = math.floor((1.0 - quantile) * rows + 1e-9)
    if good < 1:
        return rows
    missed, drawn = 1.0, 0
    while missed > eps:
        missed *= max(rows - good - drawn, 0) / (rows - drawn)
        drawn += 1
    return drawn
