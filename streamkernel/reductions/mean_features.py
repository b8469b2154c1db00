"""Features phi of a row with its target, whose means over few rows shall be those over all rows.

Of each map there are two forms. The sums over all rows are those of kernel values, which are whitened once, after the
sweep. Single rows, the candidates, have whitened features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.scaling import Scaling
from streamkernel.reductions.sums import Features
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float


class MeanFeatures(ABC):
    """A map phi of rows, and the sums from which its means follow.

    Attributes
    ----------
    scaling : scaling of the columns.
    features : whitened features g of n functions.
    """

    scaling: Scaling
    features: Features

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(q, t) of the sums."""

    @abstractmethod
    def factors(self, scaled: AnyArray, Y: Float | None) -> tuple[Float, Float]:
        """Kernel values and other columns (b, q), and multipliers (b, t), of rows: the sums are those of products."""

    @abstractmethod
    def of(self, X: AnyArray, Y: Float, code: int) -> Float:
        """phi (b, Q) of stored rows X (b, p) with targets Y (b, d), all of one class; -1 without classes."""

    @abstractmethod
    def mean(self, sums: Float, code: int, weight: float) -> Float:
        """Mean (Q,) of phi over the rows of a class, whose weights sum to `weight`."""

    @abstractmethod
    def width(self) -> int:
        """Number of features Q."""


@dataclass(frozen=True)
class ProductFeatures(MeanFeatures):
    """Features of a product kernel of rows and targets.

    ``k(x, x') [c = c']`` for classes: phi is g, and each class has a mean of its own. ``k(x, x') (1 + y.y')`` for
    standardised numbers y: ``phi = (g, g y_1, ..., g y_d)``.

    Parameters
    ----------
    scaling, features : see the base class.
    classes : number of classes; 0 for targets that are numbers, or none.
    centre, spread : (d,) of targets that are numbers.
    """

    scaling: Scaling
    features: Features
    classes: int
    centre: Float
    spread: Float

    @property
    def shape(self) -> tuple[int, int]:
        return self.features.width, self.classes or 1 + len(self.spread)

    def width(self) -> int:
        return self.features.width * (1 if self.classes else self.shape[1])

    def _multipliers(self, Y: Float | None, rows: int) -> Float:
        if self.classes:
            assert Y is not None
            return Y
        ones = np.ones((rows, 1))
        if Y is None or not len(self.spread):
            return ones
        return np.concatenate([ones, (Y - self.centre) / self.spread], axis=1)

    def factors(self, scaled: AnyArray, Y: Float | None) -> tuple[Float, Float]:
        return self.features.raw(scaled), self._multipliers(Y, len(scaled))

    def of(self, X: AnyArray, Y: Float, code: int) -> Float:
        G = np.asarray(self.features.of(self.scaling.of(X)), np.float64)
        if self.classes:
            return G
        T = self._multipliers(Y, len(X))
        return np.concatenate([G * column[:, None] for column in T.T], axis=1)

    def mean(self, sums: Float, code: int, weight: float) -> Float:
        found: Float = (sums[:, code] if self.classes else sums.T.ravel()) / weight
        return found


# Parts of phi, in units of the score. Of rows of 2 % the error of an SVM, less that of all rows, is a share of that of
# random rows: spambase .26, covtype .15, a9a .29 (docs/results/compress.md); with 1 in place of .3 it is .5, .4, .4.
_PLAIN, _SCORE = 0.3, 2.0


@dataclass(frozen=True)
class ScoreFeatures(MeanFeatures):
    """Gradients of the log likelihood at a fit: their means are those of all rows, and so is the likelihood near it.

    With ``psi = (g, x / radius, 1)``, fitted values f (C,) of the indicators of the classes, and the probability
    ``p = softmax(2 f)_y`` that the fit gives to the class y of the row, the score of a row is ``(1 - p) psi``, up to
    the sign of its class, and::

        phi = (.3 psi, 2 (1 - p) psi, sqrt(2) f)

    Parameters
    ----------
    scaling, features : see the base class.
    beta : (n, C) coefficients of g, intercept : (C,): ``f = g beta + intercept``.
    radius : root of the mean of ``|x|^2`` over scaled rows.
    """

    scaling: Scaling
    features: Features
    beta: Float
    intercept: Float
    radius: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.features.width + self.scaling.width + 1, 2 * len(self.intercept)

    def width(self) -> int:
        return 2 * self.shape[0] + len(self.intercept)

    def _beside(self, scaled: AnyArray) -> Float:
        """The columns of psi beside g."""
        return np.concatenate([scaled.astype(np.float64) / self.radius, np.ones((len(scaled), 1))], axis=1)

    @staticmethod
    def _doubt(f: Float, Y: Float) -> Float:
        """``1 - p`` (b,) of rows with fitted values f (b, C)."""
        own = np.einsum("ic,ic->i", f, Y)
        apart = np.minimum(2.0 * (f - own[:, None]), 500.0)
        return np.asarray(1.0 - 1.0 / np.exp(apart).sum(axis=1))

    def factors(self, scaled: AnyArray, Y: Float | None) -> tuple[Float, Float]:
        assert Y is not None
        F = self.features.raw(scaled)
        f = F @ self.features.coefficients(self.beta) + self.intercept
        A = np.concatenate([F, self._beside(scaled)], axis=1)
        return A, np.concatenate([Y, self._doubt(f, Y)[:, None] * Y], axis=1)

    def of(self, X: AnyArray, Y: Float, code: int) -> Float:
        scaled = self.scaling.of(X)
        G = np.asarray(self.features.of(scaled), np.float64)
        f = G @ self.beta + self.intercept
        psi = np.concatenate([G, self._beside(scaled)], axis=1)
        doubt = _SCORE * self._doubt(f, Y)[:, None]
        return np.concatenate([_PLAIN * psi, doubt * psi, np.sqrt(2.0) * f], axis=1)

    def mean(self, sums: Float, code: int, weight: float) -> Float:
        C = len(self.intercept)
        psi, score = sums[:, code] / weight, sums[:, C + code] / weight
        f = psi[: self.features.width] @ self.beta + self.intercept
        return np.concatenate([_PLAIN * psi, _SCORE * score, np.sqrt(2.0) * f])


@dataclass(frozen=True)
class MeanFeatureSums(Sums[Float]):
    """Sums (q, t) of the factors of a map over all rows, by their weights, with whitened features.

    Parameters
    ----------
    work : the map; rows are as stored.
    """

    work: MeanFeatures

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"AT": self.work.shape}

    def fold(self, state: State, block: RowBlock) -> State:
        A, T = self.work.factors(self.work.scaling.of(block.X), block.Y)
        state["AT"] += A.T @ (T if block.weights is None else T * block.weights[:, None])
        return state

    def finalize(self, state: State) -> Float:
        sums, n = state["AT"], self.work.features.width
        with single_threaded_blas():
            return np.concatenate([self.work.features.whitened(np.ascontiguousarray(sums[:n])), sums[n:]])

    def scratch_bytes(self, rows: int) -> int:
        q, t = self.work.shape
        return self.work.features.scratch_bytes(rows) + 8 * rows * (2 * q + 4 * t) + 8 * q * t

    def flops_per_row(self) -> float:
        q, t = self.work.shape
        return float(self.work.features.raw_flops() + 3 * q * t)
