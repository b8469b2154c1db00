"""Losses of large margin methods: support vector classification and regression, quantiles, one class.

A piecewise linear loss is a sum of kinks. A kink with the residual ``r = y - f`` costs ``max(h r, l r)`` with
``l <= 0 <= h``, and its dual variable u lies in the box [l, h]::

    loss(y, f) = sum over kinks of max over u in [l, h] of u (y_kink - f)

All boxes of a loss have one width ``h - l = C``; a row weight multiplies both ends. Smola & Schoelkopf 2000, section
6.1; ALGORITHMS 22.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

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
class Loss(ABC):
    """Base class of losses.

    Parameters
    ----------
    C : cost of a unit of loss, > 0.
    """

    C: float
    constant_slope: ClassVar[float] = 0.0  # of the term of the objective that is linear in the constant

    @abstractmethod
    def loss(self, y: Float, f: Float) -> Float:
        """Loss (b,) of targets y (b,) at the values f (b,)."""


@dataclass(frozen=True)
class PiecewiseLinear(Loss):
    """Base class of losses with kinks; C is the width of every box. A subclass is one formula."""

    @abstractmethod
    def kinks(self, y: Float) -> list[Kink]:
        """The kinks of rows with targets y (b,)."""

    @property
    @abstractmethod
    def kink_count(self) -> int:
        """Number of kinks of a row."""

    def loss(self, y: Float, f: Float) -> Float:
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


@dataclass(frozen=True)
class OneClass(PiecewiseLinear):
    """``C max(0, -f)``, f = g^T v - rho: rows outside the region ``g^T v >= rho``; it has no targets.

    The objective has the constant -rho as a term of its own; with ``C = 1 / (nu sum w)`` at most a share nu of the rows
    is outside (Schoelkopf et al. 2001, eq. (4) and proposition 3)::

        1/2 |v|^2 - rho + 1 / (nu sum w) sum_i w_i max(0, rho - g_i^T v)

    libsvm multiplies it, and f, by ``nu sum w``.
    """

    kink_count = 1
    constant_slope = 1.0

    def kinks(self, y: Float) -> list[Kink]:
        return [Kink(np.zeros(len(y)), np.zeros(len(y)))]


class Slopes(NamedTuple):
    """A smooth loss and its derivatives by f, (b,) each; the curvature is at least 0."""

    loss: Float
    slope: Float
    curvature: Float


@dataclass(frozen=True)
class Smooth(Loss):
    """Base class of losses with a slope that is continuous. A subclass is one formula."""

    @abstractmethod
    def at(self, y: Float, f: Float) -> Slopes:
        """Loss, slope and curvature of targets y (b,) at the values f (b,)."""

    def kink_distance(self, y: Float, f: Float) -> Float:
        """Distance (b,) of the values f from the nearest one at which the curvature jumps; inf where it does not."""
        return np.full(len(f), np.inf)

    def loss(self, y: Float, f: Float) -> Float:
        return self.at(y, f).loss


@dataclass(frozen=True)
class SquaredHinge(Smooth):
    """``C max(0, 1 - t f)^2`` for the labels ``t = 2 y - 1`` (Mangasarian & Musicant 2001, with nu / 2 = C)."""

    def at(self, y: Float, f: Float) -> Slopes:
        t = 2.0 * y - 1.0
        inside = np.maximum(1.0 - t * f, 0.0)
        return Slopes(self.C * inside**2, -2.0 * self.C * t * inside, np.where(inside > 0.0, 2.0 * self.C, 0.0))

    def kink_distance(self, y: Float, f: Float) -> Float:
        return np.asarray(np.abs(1.0 - (2.0 * y - 1.0) * f))


@dataclass(frozen=True)
class SmoothedHinge(Smooth):
    """``C g(1 - t f)^2`` with ``g(x) = log(1 + exp(s x)) / s``, the loss of RSVM (Lee & Mangasarian 2001, eq. (9)).

    Parameters
    ----------
    sharpness : s; the squared hinge is the limit for large s.
    """

    sharpness: float

    def at(self, y: Float, f: Float) -> Slopes:
        t = 2.0 * y - 1.0
        x = self.sharpness * (1.0 - t * f)
        g, step = np.logaddexp(0.0, x) / self.sharpness, 0.5 * (1.0 + np.tanh(0.5 * x))
        curvature = 2.0 * self.C * (step**2 + self.sharpness * g * step * (1.0 - step))
        return Slopes(self.C * g**2, -2.0 * self.C * t * g * step, curvature)

    def kink_distance(self, y: Float, f: Float) -> Float:
        # The curvature rises from 0 to 2 C around the kink of the squared hinge.
        return np.asarray(np.abs(1.0 - (2.0 * y - 1.0) * f))


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(Smooth):
    """``C max(0, |y - f| - epsilon)^2``.

    Parameters
    ----------
    epsilon : half the width of the tube, at least 0.
    """

    epsilon: float

    def at(self, y: Float, f: Float) -> Slopes:
        r = y - f
        outside = np.maximum(np.abs(r) - self.epsilon, 0.0)
        return Slopes(
            self.C * outside**2, -2.0 * self.C * np.sign(r) * outside, np.where(outside > 0.0, 2.0 * self.C, 0.0)
        )

    def kink_distance(self, y: Float, f: Float) -> Float:
        return np.asarray(np.abs(np.abs(y - f) - self.epsilon))


@dataclass(frozen=True)
class Huber(Smooth):
    """``C r^2`` up to ``|r| = threshold`` and linear beyond, r = y - f (Huber 1964).

    Parameters
    ----------
    threshold : residual at which the loss becomes linear, > 0.
    """

    threshold: float

    def at(self, y: Float, f: Float) -> Slopes:
        r = y - f
        near = np.clip(r, -self.threshold, self.threshold)
        return Slopes(self.C * near * (2.0 * r - near), -2.0 * self.C * near, np.where(near == r, 2.0 * self.C, 0.0))

    def kink_distance(self, y: Float, f: Float) -> Float:
        return np.asarray(np.abs(np.abs(y - f) - self.threshold))


@dataclass(frozen=True)
class Logistic(Smooth):
    """``C log(1 + exp(-t f))`` for the labels ``t = 2 y - 1``."""

    def at(self, y: Float, f: Float) -> Slopes:
        t = 2.0 * y - 1.0
        outside = 0.5 * (1.0 - np.tanh(0.5 * t * f))
        return Slopes(self.C * np.logaddexp(0.0, -t * f), -self.C * t * outside, self.C * outside * (1.0 - outside))


@dataclass(frozen=True)
class Squared(Smooth):
    """``C (y - f)^2``."""

    def at(self, y: Float, f: Float) -> Slopes:
        r = y - f
        return Slopes(self.C * r**2, -2.0 * self.C * r, np.full(len(r), 2.0 * self.C))
