"""Class probabilities from decision values, by an increasing curve for each function.

A curve gives ``q_k``, the probability of class k for the value f_k; with more than two classes ``p_k = q_k / sum q``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used: this one takes long

from streamkernel.reductions.row_map import Predictions, ProbabilityMap
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Bool, Fields, Float

_CURVE_FLOPS = 60  # time of a value of a curve, in operations


class Curves(ABC):
    """Increasing curves of K functions."""

    @abstractmethod
    def probabilities(self, f: Float) -> Float:
        """Probabilities (b, K) of the values f (b, K)."""

    @property
    @abstractmethod
    def flat(self) -> Bool:
        """(K,) whether a curve has the same probability for all values."""

    @abstractmethod
    def to_arrays(self) -> dict[str, Float]:
        """The arrays that a model stores."""


@dataclass(frozen=True)
class Sigmoids(Curves):
    """``1 / (1 + exp(-(slope f + offset)))`` (Platt 2000), with slope and offset (K,)."""

    slope: Float
    offset: Float

    def probabilities(self, f: Float) -> Float:
        return np.asarray(scipy.special.expit(self.slope * f + self.offset))

    @property
    def flat(self) -> Bool:
        return np.asarray(self.slope == 0.0)

    def to_arrays(self) -> dict[str, Float]:
        return {"calibration_slope": self.slope, "calibration_offset": self.offset}


@dataclass(frozen=True)
class Isotonic(Curves):
    """Linear between knots: values at the finite knots (K, b), increasing (Zadrozny & Elkan 2002)."""

    knots: Float
    values: Float

    def probabilities(self, f: Float) -> Float:
        found = np.empty(f.shape)
        for k, (knots, values) in enumerate(zip(self.knots, self.values, strict=True)):
            found[:, k] = np.interp(f[:, k], knots, values)
        return found

    @property
    def flat(self) -> Bool:
        return np.asarray(np.ptp(self.values, axis=1) == 0.0)

    def to_arrays(self) -> dict[str, Float]:
        return {"calibration_knots": self.knots, "calibration_values": self.values}


def curves_of(arrays: Fields) -> Curves | None:
    """The curves of a model's arrays; None where it has none."""
    if "calibration_slope" in arrays:
        return Sigmoids(arrays["calibration_slope"], arrays["calibration_offset"])
    if "calibration_knots" in arrays:
        return Isotonic(arrays["calibration_knots"], arrays["calibration_values"])
    return None


def class_probabilities(indicators: Float, curves: Curves) -> Float:
    """Probabilities (b, C) of predicted indicators (b, C); for two classes f is their difference."""
    if indicators.shape[1] == 2:
        second = curves.probabilities(indicators[:, 1:] - indicators[:, :1])[:, 0]
        return np.stack([1.0 - second, second], axis=1)
    each = curves.probabilities(indicators)
    # Far from all classes every probability may round to 0: then all are equally likely.
    each += np.finfo(np.float64).tiny
    return np.asarray(each / each.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class CalibratedProbabilities(ProbabilityMap):
    """Probabilities by curves; the predicted class is that of the largest function.

    Parameters
    ----------
    indicators : Predictions of one function per class; for two classes ``-f / 2, f / 2``.
    curves : curves of the functions; of f for two classes.
    """

    indicators: Predictions
    curves: Curves

    @property
    def classes(self) -> int:
        return int(self.indicators.coefficients.shape[1])

    def probabilities(self, X: AnyArray) -> Float:
        return class_probabilities(self.indicators.values(X), self.curves)

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        # Labels are those of the decision values: calibration says how sure they are, and changes none.
        values = self.indicators.values(block.X)
        return {"probability": class_probabilities(values, self.curves), "prediction": values.argmax(axis=1)}

    def scratch_bytes(self, rows: int) -> int:
        return self.indicators.scratch_bytes(rows) + 32 * rows * self.classes

    def flops_per_row(self) -> float:
        return self.indicators.flops_per_row() + float(_CURVE_FLOPS * self.classes)


def calibrated(indicators: Predictions, curves: Curves | None) -> Predictions | CalibratedProbabilities:
    """Probabilities by curves; without curves the values themselves."""
    return indicators if curves is None else CalibratedProbabilities(indicators, curves)
