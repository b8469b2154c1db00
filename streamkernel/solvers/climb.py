"""L-BFGS-B upwards from a point, within so many evaluations, and back from where digits end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from streamkernel.errors import NumericalError

__all__ = ["climb"]

Float = NDArray[np.float64]
Found = TypeVar("Found")

_DECIMALS = 4  # of a parameter that are looked at
_LEVEL = 1e-5  # slope at which it ends
_MEMORY = 20  # steps that the Hessian is made of


class _SpentError(Exception):
    """The evaluations are used up, in the middle of a line search."""


def climb(
    look: Callable[[Float], tuple[float, Float, Found]],
    start: Float,
    free: NDArray[np.bool_],
    low: Float,
    high: Float,
    evaluations: int,
    flat: float,
) -> tuple[Float, Found]:
    """The best of at most `evaluations` points from `start` on, and what was found there.

    L-BFGS-B (Byrd, Lu, Nocedal & Zhu 1995).

    Parameters
    ----------
    look : of a point (k,), its value, the gradient (k,), and whatever belongs to it.
    start : (k,); of what is free, the nearest point within the bounds.
    free : (k,) whether a parameter moves; low, high : (k,) bounds of those that do.
    evaluations : at most so many.
    flat : gain of an iteration at which it ends.

    Raises
    ------
    NumericalError
        There is nothing to be had at the start.
    """
    best: tuple[float, Float, Found] | None = None
    worst, spent = -np.inf, 0

    def negative(moved: Float) -> tuple[float, Float]:
        nonlocal best, worst, spent
        if spent == evaluations:
            raise _SpentError
        spent += 1
        values = start.copy()
        # Decisions about a basis follow: rounding of the targets must not reach them.
        values[free] = np.clip(np.round(moved, _DECIMALS), low[free], high[free])
        try:
            value, gradient, found = look(values)
        except NumericalError:
            if best is None:
                raise
            # The line search has gone to where digits end: it turns back.
            return worst + 1.0, np.zeros(len(moved))
        worst = max(worst, -value)
        if best is None or value > best[0]:
            best = value, values, found
        return -value, -gradient[free]

    first: Float = np.clip(start[free], low[free], high[free])
    with suppress(_SpentError):
        if len(first) == 0:
            negative(first)
        else:
            minimize(
                negative,
                first,
                jac=True,
                method="L-BFGS-B",
                bounds=list(zip(low[free].tolist(), high[free].tolist(), strict=True)),
                options={"maxfun": evaluations, "ftol": flat, "gtol": _LEVEL, "maxcor": _MEMORY},
            )
    assert best is not None
    return best[1], best[2]
