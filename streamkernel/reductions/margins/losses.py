"""Piecewise linear losses: support vector classification and regression, quantiles.

Each is a sum of kinks. A kink with the residual ``r = y - f`` costs ``max(h r, l r)`` with ``l <= 0 <= h``, and its
dual variable u lies in the box [l, h]::

    loss(y, f) = sum over kinks of max over u in [l, h] of u (y_kink - f)

All boxes of a loss have one width ``h - l = C``; a row weight multiplies both ends. Smola & Schoelkopf 2000, section
6.1; ALGORITHMS 22.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamkernel.type_aliases import Float


class Kink(NamedTuple):
    """One kink of the loss of each row.

    Attributes
    ----------
    targets : (b,) values of f at which the slope changes.
    low : (b,) lower ends l of the boxes.
    """

    targets: Float
    low: Float


@dataclass(frozen=True)
class PiecewiseLinear(ABC):
    """Base class. A subclass is one formula.

    Parameters
    ----------
    C : cost of a unit of loss, > 0; the width of every box.
    """

    C: float

    @abstractmethod
    def kinks(self, y: Float) -> list[Kink]:
        """The kinks of rows with targets y (b,)."""

    @property
    @abstractmethod
    def kink_count(self) -> int:
        """Number of kinks of a row."""

    def loss(self, y: Float, f: Float) -> Float:
        """Loss (b,) of the values f (b,)."""
        total = np.zeros(len(f))
        for kink in self.kinks(y):
            r = kink.targets - f
            total += np.maximum((kink.low + self.C) * r, kink.low * r)
        return total


@dataclass(frozen=True)
class Hinge(PiecewiseLinear):
    """``C max(0, 1 - t f)`` for the labels ``t = 2 y - 1``, y an indicator: 1 in the class and 0 outside it."""

    kink_count = 1

    def kinks(self, y: Float) -> list[Kink]:
        return [Kink(2.0 * y - 1.0, np.where(y > 0.5, 0.0, -self.C))]


@dataclass(frozen=True)
class Pinball(PiecewiseLinear):
    """``C max(q r, (q - 1) r)``, whose minimum is the quantile q (Koenker & Bassett 1978).

    Parameters
    ----------
    quantile : q, between 0 and 1.
    """

    quantile: float
    kink_count = 1

    def kinks(self, y: Float) -> list[Kink]:
        return [Kink(y, np.full(len(y), (self.quantile - 1.0) * self.C))]


@dataclass(frozen=True)
class EpsilonInsensitive(PiecewiseLinear):
    """``C max(0, |y - f| - epsilon)``: two kinks, at the ends of the tube.

    Parameters
    ----------
    epsilon : half the width of the tube, at least 0.
    """

    epsilon: float
    kink_count = 2

    def kinks(self, y: Float) -> list[Kink]:
        return [Kink(y - self.epsilon, np.zeros(len(y))), Kink(y + self.epsilon, np.full(len(y), -self.C))]
