"""Search by L-BFGS-B over the logarithms of hyper-parameters; some may be fixed, and every point is recorded."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streamkernel.kernels import Kernel, log_lengthscales, with_log_lengthscales
from streamkernel.tuning._bounds import Bounds
from streamkernel.tuning._maximise import maximise
from streamkernel.tuning.sample_evidence import Evidence
from streamkernel.type_aliases import Float

MOVABLE = ("lengthscale", "signal", "noise")

_FLAT = 2e-6  # a round ends when an iteration gains less, in nats per row


@dataclass(frozen=True)
class TuningPoint:
    """One evaluation of the evidence.

    Attributes
    ----------
    stage : "sample" or "full"; round : number of the round, which has its own basis points; basis : number of points.
    lengthscales : (t,) in the order of `kernels.log_lengthscales`; signal, noise : variances.
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
    """A function of the hyper-parameters with value and gradient, as `SparseEvidence`."""

    def at(self, kernel: Kernel, signal: float, noise: float) -> Evidence: ...


class EvidenceSearch:
    """A search over (log lengthscales, log signal, log noise), in rounds.

    Parameters
    ----------
    kernel : Kernel whose lengthscales may move.
    fixed : names out of `MOVABLE` that keep their start values.
    bounds : Bounds of the other hyper-parameters.
    points : points of an earlier search; the new points are appended.
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
        """The best of at most `evaluations` points, starting from `start`, and its evidence.

        It is `maximise` on the evidence per row and target.

        Raises
        ------
        NumericalError
            The evaluation at the start fails.
        """

        def look(values: Float) -> tuple[float, Float, Evidence]:
            signal, noise = float(np.exp(values[-2])), float(np.exp(values[-1]))
            found = objective.at(with_log_lengthscales(self.kernel, values[:-2]), signal, noise)
            value = found.value / found.count
            lengthscales = tuple(np.exp(values[:-2]).tolist())
            self.points.append(TuningPoint(stage, number, len(found.basis), lengthscales, signal, noise, value))
            return value, found.gradient / found.count, found

        return maximise(look, start, self._free, self._bounds.low, self._bounds.high, evaluations, _FLAT)
