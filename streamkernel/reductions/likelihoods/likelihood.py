"""Likelihoods p(y | f) of the exponential family: the loss, its gradient and its curvature, row by row.

With the cumulant A and the base measure h, ``-log p(y | f) = A(f) - y^T f + h(y)``, so that ``A'(f)`` is the mean of y
and ``A''(f)`` the curvature of the loss.

Every curvature is a sum over fixed directions with weights >= 0, ``A''(f) = sum_k w_k(f) e_k e_k^T``: one weight for a
single function, and ``p_c p_d`` with ``e = e_c - e_d`` for each pair of classes. Therefore sums over rows of ``A'' kron
g g^T`` are Gram matrices of weighted rows, which SYRK computes at its full rate.

A softmax does not change when one number is added to all its functions. They therefore have free coordinates ``f = Q
t``, with orthonormal columns Q (c, r) that sum to 0, r = c - 1; r = c = 1 otherwise. For independent functions of equal
variance this removes exactly the direction that the data cannot determine.

Tresp 2001, section 2.3; Rasmussen & Williams 2006, sections 3.4 and 3.5; ALGORITHMS 5.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np

from streamkernel.errors import DataError
from streamkernel.type_aliases import Bool, Float
from streamkernel.wording import option

LEAST_CURVATURE = 1e-10
_LEAST_COUNT = 1e-3  # count of a class without rows: with 0 its constant would be minus infinity


def least_count(weight: float) -> float:
    """The least count of a class in rows of total weight `weight`: a share of them where they are less than one row."""
    return _LEAST_COUNT * min(weight, 1.0)


class Likelihood(ABC):
    """Base class. A subclass is one formula, a frozen dataclass; all methods are pure and work row by row."""

    name: ClassVar[str]

    @property
    def width(self) -> int:
        """Number of functions c."""
        return 1

    @property
    def pairs(self) -> Float:
        """Directions e_k of the curvature, (K, c)."""
        return np.ones((1, 1))

    @property
    def pair_count(self) -> int:
        """Number of directions K."""
        return self.width * (self.width - 1) // 2 or 1

    @cached_property
    def contrasts(self) -> Float:
        """Q (c, r), orthonormal columns: ``f = Q t`` in free coordinates t."""
        return np.ones((1, 1))

    @property
    def free(self) -> int:
        """Number of free coordinates r."""
        return int(self.contrasts.shape[1])

    @abstractmethod
    def targets(self, Y: Float | None, start: int) -> Float:
        """y (b, c), from the targets of a block.

        Parameters
        ----------
        Y : (b, d) targets as the table yields them.
        start : number of the first row of the block.

        Raises
        ------
        DataError
            The targets are of another kind; the message names the first such row.
        """

    @abstractmethod
    def cumulant(self, f: Float) -> Float:
        """A(f), (b,), for f (b, c)."""

    @abstractmethod
    def loss(self, y: Float, f: Float) -> Float:
        """``-log p(y | f)``, (b,), including h(y); infinite if it overflows."""

    @abstractmethod
    def mean(self, f: Float) -> Float:
        """``E(y | f) = A'(f)``, (b, c); the gradient of the loss by f is ``mean(f) - y``."""

    @abstractmethod
    def weights(self, f: Float) -> Float:
        """Weights w_k(f), (b, K), at least 1e-10."""

    @abstractmethod
    def weights_slope(self, f: Float, v: Float) -> Float:
        """``sum_k v_k dw_k / df``, (b, c), for v (b, K), ignoring the lower bound on the weights."""

    @abstractmethod
    def constants(self, share: Float) -> Float:
        """Constants f (c,) with ``A'(f) = share``; those of a softmax sum to 0."""

    def shares(self, total: Float, weight: float) -> Float:
        """Means (c,) of targets with the sum `total` over rows of total weight `weight`, inside their range."""
        return np.asarray(np.maximum(total, least_count(weight)) / weight)

    def cautious(self, a: Float) -> Float:
        """Functions (c,) at which the first step from the constants a (c,) takes its curvature.

        The default is f = 0, where all classes are equally likely. The curvature at the constant of a rare class is so
        small that a step would overshoot on the rows of this class.
        """
        return np.zeros_like(a)

    def curvature(self, f: Float) -> Float:
        """Curvature A''(f), (b, c, c)."""
        return np.asarray(np.einsum("bk,kc,kd->bcd", self.weights(f), self.pairs, self.pairs))

    def diagonal(self, f: Float) -> Float:
        """Diagonal of A''(f), (b, c), at least 1e-10."""
        return self.weights(f)

    def total_curvature(self, f: Float, weights: Float) -> Float:
        """``sum_i w_i A''(f_i)``, (c, c), for row weights w (b,)."""
        return np.asarray(weights @ self.weights(f))[None]


def target_columns(Y: Float | None, name: str) -> Float:
    if Y is None or Y.shape[1] == 0:
        raise DataError(
            f"a {name} likelihood needs targets and the rows have none; ingest them with {option('target')}, or give y"
        )
    return Y


def check_indicators(Y: Float, start: int, name: str) -> None:
    """Check that each row has one 1 and is 0 elsewhere; raise DataError otherwise."""
    sound = ((Y == 0.0) | (Y == 1.0)).all(axis=1) & (Y.sum(axis=1) == 1.0)
    require_targets(
        sound[:, None], Y, start, f"a {name} likelihood takes indicators, one 1 in each row and 0 elsewhere"
    )


def require_targets(sound: Bool, y: Float, start: int, what: str) -> None:
    """Raise a DataError that names the first row with an entry of `sound` (b, d) that is False, if there is one."""
    if not sound.all():
        row = int(np.flatnonzero(~sound.all(axis=1))[0])
        values = ", ".join(f"{value:g}" for value in y[row, :5])
        raise DataError(f"{what}, y holds {values} in row {start + row}")
