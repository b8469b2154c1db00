"""Whether a fit uses nearly all the degrees of freedom that its basis offers: a larger basis would then help."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_NEARLY_ALL = 0.95


@dataclass(frozen=True)
class Degrees:
    """Degrees of freedom that a fit uses, ``tr (H (H + alpha I)^-1)``, of those that its basis offers.

    Their ratio is near 1 where the data determine the coefficient of nearly every function, and would determine more of
    them. That is a fact of fits which choose their regularisation by the data: one that is given may be small for any
    basis.

    Parameters
    ----------
    used : effective degrees of freedom, without that of an intercept; of several targets the most.
    offered : number of functions, times that of the independent outputs that share `used`.
    constants : degrees of an intercept, which any basis has: they are counted in print, as in the model's effective
        degrees of freedom beside it.
    """

    used: float
    offered: int
    constants: int = 0

    @property
    def saturated(self) -> bool:
        """Whether at least 95 % of them are used."""
        return math.isfinite(self.used) and self.offered > 0 and self.used >= _NEARLY_ALL * self.offered

    @property
    def verdict(self) -> str | None:
        """One clause for page and console; None where it is not saturated."""
        if not self.saturated:
            return None
        # A trace may be above its rank by rounding.
        used, offered = round(self.used + self.constants), self.offered + self.constants
        return f"{min(used, offered):,} of {offered:,} degrees used, a larger basis would help"


def degrees_of(
    used: float | Iterable[float] | None,
    outputs: int,
    size: int,
    *,
    rule: str,
    ended: str,
    chosen: bool,
    constants: int = 0,
) -> Degrees | None:
    """The degrees of a fit; None where they are not known, or say nothing about the size of the basis.

    Parameters
    ----------
    used : effective degrees of freedom, one number or one for each target.
    outputs : independent outputs that share them.
    size : number n of functions.
    rule, ended : rule of the basis, and why it ended: there is no larger basis of the columns, or of a full rank.
    chosen : whether the regularisation was chosen by the data.
    constants : degrees of an intercept, which are not in `used`.
    """
    if used is None or not chosen or ended == "rank" or rule == "columns":
        return None
    most = float(used) if isinstance(used, (int, float)) else max(used, default=math.nan)
    return Degrees(most, size * outputs, constants)
