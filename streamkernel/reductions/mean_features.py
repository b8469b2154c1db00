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


class FeatureRows(ABC):
    """phi (b, Q) of some rows."""

    @property
    @abstractmethod
    def squares(self) -> Float:
        """(b,) ``|phi_i|^2``."""

    @abstractmethod
    def times(self, v: Float) -> Float:
        """(b,) products ``phi_i . v`` with v (Q,)."""

    @abstractmethod
    def row(self, i: int) -> Float:
        """(Q,) phi of one row."""


@dataclass(frozen=True)
class DenseRows(FeatureRows):
    """phi as an array (b, Q)."""

    phi: Float

    @property
    def squares(self) -> Float:
        return np.asarray(np.einsum("ij,ij->i", self.phi, self.phi))

    def times(self, v: Float) -> Float:
        return np.asarray(self.phi @ v)

    def row(self, i: int) -> Float:
        # A view would keep all of phi.
        return np.array(self.phi[i])


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

    @property
    def numbers_of_row(self) -> int:
        """Numbers of one row in what `rows_of` gives."""
        return self.width()

    @abstractmethod
    def factors(self, scaled: AnyArray, Y: Float | None) -> tuple[Float, Float]:
        """Kernel values and other columns (b, q), and multipliers (b, t), of rows: the sums are those of products."""

    @abstractmethod
    def of(self, X: AnyArray, Y: Float) -> Float:
        """phi (b, Q) of stored rows X (b, p) with targets Y (b, d)."""

    def rows_of(self, X: AnyArray, Y: Float) -> FeatureRows:
        """phi of stored rows, as `of`, in a form that need not be dense."""
        return DenseRows(self.of(X, Y))

    def sums(self, X: AnyArray, Y: Float | None, weights: Float | None) -> Float:
        """Sums (q, t) of the factors of stored rows, by their weights."""
        A, T = self.factors(self.scaling.of(X), Y)
        found: Float = A.T @ (T if weights is None else T * weights[:, None])
        return found

    def sums_bytes(self, rows: int) -> int:
        """Bytes that `sums` needs for so many rows, beside those of kernel values."""
        q, t = self.shape
        return 8 * rows * (2 * q + 4 * t) + 8 * q * t

    @abstractmethod
    def mean(self, sums: Float, code: int, weight: float) -> Float:
        """Mean (Q,) of phi over the rows of a class, whose weights sum to `weight`; code -1 for all rows."""

    @abstractmethod
    def width(self) -> int:
        """Number of features Q."""


@dataclass(frozen=True)
class ClassFeatures(MeanFeatures):
    """``phi = g``, with a mean for each class: the features of the product kernel ``k(x, x') [c = c']``.

    Targets that are numbers take no part. With the kernel ``k(x, x') (1 + y.y')`` rows of 2 % lose 1.3 times as much as
    random ones (kernel ridge regression on california-housing and kin40k).

    Parameters
    ----------
    scaling, features : see the base class.
    classes : number of classes; 0 for none.
    """

    scaling: Scaling
    features: Features
    classes: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.features.width, self.classes or 1

    def width(self) -> int:
        return self.features.width

    def factors(self, scaled: AnyArray, Y: Float | None) -> tuple[Float, Float]:
        F = self.features.raw(scaled)
        if not self.classes:
            return F, np.ones((len(F), 1))
        assert Y is not None
        return F, Y

    def of(self, X: AnyArray, Y: Float) -> Float:
        return np.asarray(self.features.of(self.scaling.of(X)), np.float64)

    def mean(self, sums: Float, code: int, weight: float) -> Float:
        found: Float = sums[:, max(code, 0)] / weight
        return found


# Weights of the parts of phi. Of rows of 2 % the error of an SVM, less that of all rows, is a share of that of random
# rows: spambase .20, covtype-subset .17 (docs/results/compress.md); with 1 in place of .3 it is .41 and .34.
PLAIN, SCORE = 0.3, 2.0


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
        return self.features.width + self.scaling.columns + 1, 2 * len(self.intercept)

    def width(self) -> int:
        return 2 * self.shape[0] + len(self.intercept)

    def _beside(self, scaled: AnyArray) -> Float:
        """The columns of psi beside g."""
        return np.concatenate([scaled.astype(np.float64) / self.radius, np.ones((len(scaled), 1))], axis=1)

    @staticmethod
    def doubt(f: Float, Y: Float) -> Float:
        """``1 - p`` (b,) of rows with fitted values f (b, C)."""
        own = np.einsum("ic,ic->i", f, Y)
        apart = np.minimum(2.0 * (f - own[:, None]), 500.0)
        return np.asarray(1.0 - 1.0 / np.exp(apart).sum(axis=1))

    def multipliers(self, F: Float, Y: Float) -> Float:
        """``[Y, (1 - p) Y]``, (b, 2 C), of rows with kernel values F (b, n)."""
        f = F @ self.features.coefficients(self.beta) + self.intercept
        return np.concatenate([Y, self.doubt(f, Y)[:, None] * Y], axis=1)

    def fitted(self, scaled: AnyArray) -> tuple[Float, Float]:
        """Features g (b, n) of scaled rows, and their fitted values f (b, C)."""
        G = np.asarray(self.features.of(scaled), np.float64)
        return G, G @ self.beta + self.intercept

    def factors(self, scaled: AnyArray, Y: Float | None) -> tuple[Float, Float]:
        assert Y is not None
        F = self.features.raw(scaled)
        return np.concatenate([F, self._beside(scaled)], axis=1), self.multipliers(F, Y)

    def of(self, X: AnyArray, Y: Float) -> Float:
        scaled = self.scaling.of(X)
        G, f = self.fitted(scaled)
        n, q = G.shape[1], self.shape[0]
        phi = np.empty((len(G), self.width()))
        # In place: as arrays of their own, psi and its two multiples would take the memory of phi once more.
        psi, scores = phi[:, :q], phi[:, q : 2 * q]
        psi[:, :n], psi[:, -1] = G, 1.0
        np.divide(scaled, self.radius, out=psi[:, n:-1], dtype=np.float64)
        np.multiply(psi, SCORE * self.doubt(f, Y)[:, None], out=scores)
        psi *= PLAIN
        np.multiply(f, np.sqrt(2.0), out=phi[:, 2 * q :])
        return phi

    def mean(self, sums: Float, code: int, weight: float) -> Float:
        C = len(self.intercept)
        psi, score = sums[:, code] / weight, sums[:, C + code] / weight
        f = psi[: self.features.width] @ self.beta + self.intercept
        return np.concatenate([PLAIN * psi, SCORE * score, np.sqrt(2.0) * f])


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
        state["AT"] += self.work.sums(block.X, block.Y, block.weights)
        return state

    def finalize(self, state: State) -> Float:
        sums, n = state["AT"], self.work.features.width
        with single_threaded_blas():
            return np.concatenate([self.work.features.whitened(np.ascontiguousarray(sums[:n])), sums[n:]])

    def scratch_bytes(self, rows: int) -> int:
        return self.work.features.scratch_bytes(rows) + self.work.sums_bytes(rows)

    def flops_per_row(self) -> float:
        q, t = self.work.shape
        return float(self.work.features.raw_flops() + 3 * q * t)
