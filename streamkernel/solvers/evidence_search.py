"""L-BFGS-B over the logarithms of hyper-parameters, of which some stand still; every point is kept."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamkernel.kernels import Kernel, log_lengthscales, with_log_lengthscales
from streamkernel.solvers.climb import climb
from streamkernel.solvers.sample_evidence import Evidence
from streamkernel.solvers.tuning_bounds import Bounds

__all__ = ["MOVABLE", "EvidenceSearch", "TuningPoint"]

Float = NDArray[np.float64]

MOVABLE = ("lengthscale", "signal", "noise")

_FLAT = 2e-6  # gain of an iteration, nats a row, at which a round ends


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

        `climb` on the evidence per row and target.

        Raises
        ------
        NumericalError
            The evidence cannot be had at the start.
        """

        def look(values: Float) -> tuple[float, Float, Evidence]:
            signal, noise = float(np.exp(values[-2])), float(np.exp(values[-1]))
            found = objective.at(with_log_lengthscales(self.kernel, values[:-2]), signal, noise)
            value = found.value / found.count
            lengthscales = tuple(np.exp(values[:-2]).tolist())
            self.points.append(TuningPoint(stage, number, len(found.basis), lengthscales, signal, noise, value))
            return value, found.gradient / found.count, found

        return climb(look, start, self._free, self._bounds.low, self._bounds.high, evaluations, _FLAT)
