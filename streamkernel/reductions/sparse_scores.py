"""Scores of sparse rows (`ScoreFeatures`), of which only the entries are held.

The columns of a score are ``x - c``, c the mean of the scaled columns. No such row has an empty column, but all that a
compression asks of them are sums and products::

    (x - c) . v = x . v - c . v        |x - c|^2 = |x|^2 - 2 c . x + |c|^2        sum t (x - c) = sum t x - c sum t

x as stored has only its entries. These differences lose as many digits as the distances of sparse rows do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.pairs import as_csr
from streamkernel.reductions.mean_features import PLAIN, SCORE, FeatureRows, ScoreFeatures
from streamkernel.reductions.scaling import Scaling
from streamkernel.type_aliases import AnyArray, Float

_ARRAYS = 6  # of the size of the rows: scaled, in CSR, and what turns them into that


def squared_norms(scaling: Scaling, scaled: AnyArray) -> Float:
    """(b,) ``|x - c|^2`` of scaled sparse rows in pairs."""
    centre = scaling.centre
    assert centre is not None
    X = as_csr(scaled, len(centre))
    return _norms(X, centre)


def _norms(X: Any, centre: Float) -> Float:
    found: Float = X.multiply(X).sum(axis=1) - 2.0 * (X @ centre) + centre @ centre
    return np.maximum(found, 0.0)


@dataclass(frozen=True)
class ScoreRows(FeatureRows):
    """``phi = (.3 psi, 2 (1 - p) psi, sqrt(2) f)`` with ``psi = (g, x - c, 1)``.

    Parameters
    ----------
    G : (b, n) whitened features.
    X : (b, p) CSR, scaled columns over the radius.
    centre : (p,) c, over the radius.
    doubt : (b,) ``2 (1 - p)``.
    f : (b, C) fitted values.
    """

    G: Float
    X: Any
    centre: Float
    doubt: Float
    f: Float

    @property
    def squares(self) -> Float:
        psi = np.einsum("ij,ij->i", self.G, self.G) + _norms(self.X, self.centre) + 1.0
        return np.asarray((PLAIN**2 + self.doubt**2) * psi + 2.0 * np.einsum("ij,ij->i", self.f, self.f))

    def times(self, v: Float) -> Float:
        n, q = self.G.shape[1], self.G.shape[1] + len(self.centre) + 1
        V = np.ascontiguousarray(v[: 2 * q].reshape(2, q).T)
        psi = self.G @ V[:n] + self.X @ V[n:-1] + (V[-1] - self.centre @ V[n:-1])
        return np.asarray(PLAIN * psi[:, 0] + self.doubt * psi[:, 1] + np.sqrt(2.0) * (self.f @ v[2 * q :]))

    def row(self, i: int) -> Float:
        x = self.X[[i]].toarray()[0] - self.centre
        psi = np.concatenate([self.G[i], x, np.ones(1)])
        return np.concatenate([PLAIN * psi, self.doubt[i] * psi, np.sqrt(2.0) * self.f[i]])


@dataclass(frozen=True)
class SparseScores(ScoreFeatures):
    """`ScoreFeatures` of sparse rows in pairs; `scaling` has the centre of their columns."""

    @property
    def numbers_of_row(self) -> int:
        return self.features.width + _ARRAYS * self.scaling.width + 2 * len(self.intercept) + 4

    def _columns(self, scaled: AnyArray) -> tuple[Any, Float]:
        """Scaled columns in CSR, and their centre, both over the radius."""
        centre = self.scaling.centre
        assert centre is not None
        return as_csr(scaled, len(centre)) * (1.0 / self.radius), centre / self.radius

    def rows_of(self, X: AnyArray, Y: Float) -> ScoreRows:
        scaled = self.scaling.of(X)
        G, f = self.fitted(scaled)
        return ScoreRows(G, *self._columns(scaled), SCORE * self.doubt(f, Y), f)

    def sums(self, X: AnyArray, Y: Float | None, weights: Float | None) -> Float:
        assert Y is not None
        scaled = self.scaling.of(X)
        F = self.features.raw(scaled)
        T = self.multipliers(F, Y)
        if weights is not None:
            T *= weights[:, None]
        entries, centre = self._columns(scaled)
        total = T.sum(axis=0)
        return np.concatenate([F.T @ T, entries.T @ T - np.outer(centre, total), total[None]])

    def sums_bytes(self, rows: int) -> int:
        q, t = self.shape
        return 8 * rows * (2 * self.features.width + _ARRAYS * self.scaling.width + 4 * t) + 24 * q * t
