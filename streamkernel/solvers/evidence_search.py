"""L-BFGS-B over the logarithms of hyper-parameters, of which some stand still; every point is kept."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from streamkernel.errors import NumericalError
from streamkernel.kernels import Kernel, log_lengthscales, with_log_lengthscales
from streamkernel.solvers.sample_evidence import Evidence
from streamkernel.solvers.tuning_bounds import Bounds

__all__ = ["MOVABLE", "EvidenceSearch", "TuningPoint"]

Float = NDArray[np.float64]

MOVABLE = ("lengthscale", "signal", "noise")

_FLAT = 2e-6  # gain of an iteration, nats a row, at which a round ends
_LEVEL = 1e-5  # and slope
_MEMORY = 20  # steps that the Hessian is made of


@dataclass(frozen=True)
class TuningPoint:
    """One evaluation.

    Attributes
    ----------
    stage : "sample" or "full"; round : number of the choice of basis points; basis : how many they were.
    lengthscales : (t,) as `kernels.log_lengthscales` has them; signal, noise : variances.
    value : evidence, nats per row and target.
    """

    stage: str
    round: int
    basis: int
    lengthscales: tuple[float, ...]
    signal: float
    noise: float
    value: float


class Objective(Protocol):
    """`SparseEvidence`, or what has its value and gradient."""

    def at(self, kernel: Kernel, signal: float, noise: float) -> Evidence: ...


class _SpentError(Exception):
    """The evaluations of a round are used up, in the middle of a line search."""


class EvidenceSearch:
    """Rounds of a search over (log lengthscales, log signal, log noise).

    Parameters
    ----------
    kernel : whose lengthscales may move.
    fixed : of `MOVABLE` what stays where it starts.
    bounds : of the others.
    points : of the search so far; the new ones follow.
    """

    def __init__(
        self, kernel: Kernel, fixed: Collection[str], bounds: Bounds, points: Collection[TuningPoint] = ()
    ) -> None:
        self.kernel = kernel
        lengthscales = ["lengthscale" not in fixed] * len(log_lengthscales(kernel))
        self._free = np.array([*lengthscales, "signal" not in fixed, "noise" not in fixed])
        self._bounds = bounds
        self.points = list(points)

    def round(
        self, objective: Objective, start: Float, evaluations: int, stage: str, number: int
    ) -> tuple[Float, Evidence]:
        """The best of at most `evaluations` points from `start` on, and what it is worth.

        L-BFGS-B (Byrd, Lu, Nocedal & Zhu 1995) on the evidence per row and target.

        Raises
        ------
        NumericalError
            The evidence cannot be had at the start.
        """
        best: tuple[Float, Evidence] | None = None
        worst, spent = -np.inf, 0

        def negative(free: Float) -> tuple[float, Float]:
            nonlocal best, worst, spent
            if spent == evaluations:
                raise _SpentError
            spent += 1
            values = start.copy()
            values[self._free] = free
            signal, noise = float(np.exp(values[-2])), float(np.exp(values[-1]))
            try:
                found = objective.at(with_log_lengthscales(self.kernel, values[:-2]), signal, noise)
            except NumericalError:
                if best is None:
                    raise
                # The line search has gone to where digits end: it turns back.
                return worst + 1.0, np.zeros(len(free))
            value = found.value / found.count
            worst = max(worst, -value)
            lengthscales = tuple(np.exp(values[:-2]).tolist())
            self.points.append(TuningPoint(stage, number, len(found.basis), lengthscales, signal, noise, value))
            if best is None or found.value > best[1].value:
                best = values, found
            return -value, -found.gradient[self._free] / found.count

        low, high = self._bounds.low[self._free], self._bounds.high[self._free]
        first: Float = np.clip(start[self._free], low, high)
        with suppress(_SpentError):
            if len(first) == 0:
                negative(first)
            else:
                minimize(
                    negative,
                    first,
                    jac=True,
                    method="L-BFGS-B",
                    bounds=list(zip(low.tolist(), high.tolist(), strict=True)),
                    options={"maxfun": evaluations, "ftol": _FLAT, "gtol": _LEVEL, "maxcor": _MEMORY},
                )
        assert best is not None
        return best
