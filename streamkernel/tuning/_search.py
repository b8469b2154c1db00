"""The search for hyper-parameters: L-BFGS-B with a limited number of evaluations, every point of which is recorded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy  # its parts are loaded when they are used: this one takes long

from streamkernel.errors import NumericalError
from streamkernel.kernels import Kernel
from streamkernel.type_aliases import Bool, Float

Found = TypeVar("Found")

_DECIMALS = 4  # of a parameter; further decimals are rounded off
_LEVEL = 1e-5  # slope at which the search ends
_MEMORY = 20  # steps in the approximate Hessian


@dataclass(frozen=True)
class TuningPoint:
    """One evaluation of the evidence.

    Attributes
    ----------
    stage : "sample" or "full", of a likelihood "grid" or "search"; round : number of the round, which has its own basis
        points; basis : number of points.
    lengthscales : (t,) in the order of `kernels.log_lengthscales`; signal, noise : variances; no noise of a likelihood.
    value : evidence, nats per row and target.
    """

    stage: str
    round: int
    basis: int
    lengthscales: tuple[float, ...]
    signal: float
    noise: float | None
    value: float

    @property
    def of_all_rows(self) -> bool:
        """Whether it was evaluated on all rows, not on the sample."""
        return self.stage == "full"


@dataclass(frozen=True)
class Tuning:
    """Result of a search.

    Attributes
    ----------
    kernel : Kernel with the lengthscales of the best point.
    signal, noise : variances of the best point, in units of the scaled targets; no noise of a likelihood.
    value : its evidence, nats per row and target.
    objective : "fitc", "vfe" or "laplace".
    rows : number of rows of the sample.
    moved : names of the free hyper-parameters.
    points : all evaluated points, in order.
    targets : positions of the targets that are not constant in the sample; only these enter the evidence.
    """

    kernel: Kernel
    signal: float
    noise: float | None
    value: float
    objective: str
    rows: int
    moved: tuple[str, ...]
    points: tuple[TuningPoint, ...]
    targets: tuple[int, ...] = (0,)


class _SpentError(Exception):
    """The evaluations are used up. It is raised within a line search."""


def maximise(
    evaluate: Callable[[Float], tuple[float, Float, Found]],
    start: Float,
    free: Bool,
    low: Float,
    high: Float,
    evaluations: int,
    flat: float,
) -> tuple[Float, Found]:
    """The best of at most `evaluations` points, starting from `start`, and its result.

    L-BFGS-B (Byrd, Lu, Nocedal & Zhu 1995).

    Parameters
    ----------
    evaluate : function of a point (k,) that returns its value, the gradient (k,) and a result.
    start : (k,) start; free parameters are clipped to the bounds.
    free : (k,) True for parameters that may move; low, high : (k,) their bounds.
    evaluations : largest number of evaluations.
    flat : the search ends when an iteration gains less.

    Raises
    ------
    NumericalError
        The evaluation at the start fails.
    """
    best: tuple[float, Float, Found] | None = None
    worst, spent = -np.inf, 0

    def negative(moved: Float) -> tuple[float, Float]:
        nonlocal best, worst, spent
        if spent == evaluations:
            raise _SpentError
        spent += 1
        values = start.copy()
        # The parameters decide on a basis, and rounding errors of the targets must not change these decisions.
        values[free] = np.clip(np.round(moved, _DECIMALS), low[free], high[free])
        try:
            value, gradient, found = evaluate(values)
        except NumericalError:
            if best is None:
                raise
            # The line search has reached points without digits: a value below all others makes it turn back.
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
            scipy.optimize.minimize(
                negative,
                first,
                jac=True,
                method="L-BFGS-B",
                bounds=list(zip(low[free].tolist(), high[free].tolist(), strict=True)),
                options={"maxfun": evaluations, "ftol": flat, "gtol": _LEVEL, "maxcor": _MEMORY},
            )
    assert best is not None
    return best[1], best[2]
