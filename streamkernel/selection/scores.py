"""Scores of candidates: one class per rule of the papers, each a formula of a few sums.

For a candidate i, ``R_i`` is its residual column given all previous picks, and P is the projector on the span of the
columns of these picks (ALGORITHMS 1.3)::

    S_ii = R_i[i]     C_ii = |R_i|^2     B_ii = |(I - P) R_i|^2     D_i = R_i^T (I - P) Y     B_ij = R_i^T (I - P) R_j
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class Candidates:
    """The sums of all candidates before a pick; only those that the score needs are computed.

    Attributes
    ----------
    pivots : (k,) S_ii; 1 for a candidate that must not be picked.
    trace : trace of K over the scoring rows, with their weights.
    square : ``|Y|^2`` of the scaled targets; 1 without targets.
    rho : ridge of the projection in ``B_ii`` and ``D``.
    squares : (k,) C_ii.
    first_squares : (k,) C_ii at the start of the round.
    left : (k,) B_ii.
    explained : (k,) ``|D_i|^2``, summed over the scaled targets.
    cross : (k, k) B_ij.
    coefficients : (k,) ``|T_i|_1``, with T_i the coefficients of ``k(., x_i)`` in the basis.
    """

    pivots: Float
    trace: float
    square: float
    rho: float
    squares: Float = field(default_factory=lambda: np.zeros(0))
    first_squares: Float = field(default_factory=lambda: np.zeros(0))
    left: Float = field(default_factory=lambda: np.zeros(0))
    explained: Float = field(default_factory=lambda: np.zeros(0))
    cross: Float = field(default_factory=lambda: np.zeros((0, 0)))
    coefficients: Float = field(default_factory=lambda: np.zeros(0))


class Score(ABC):
    """A score, which picks maximise, and the sums that it needs."""

    needs_squares: bool = False
    needs_projection: bool = False
    needs_cross: bool = False
    needs_coefficients: bool = False
    rho: float | None = 0.0

    @abstractmethod
    def values(self, candidates: Candidates) -> Float:
        """Scores (k,), >= 0."""

    def parts(self, candidates: Candidates) -> Float:
        """Terms (w, k) of the scores; w = 0 for scores without parts."""
        return np.zeros((0, len(candidates.pivots)))


def _over(numerator: Float, denominator: Float) -> Float:
    """Quotient; 0 where the denominator is not positive."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0.0)


@dataclass(frozen=True)
class FunctionSpace(Score):
    """``C_ii / S_ii``: the decrease of the residual trace (Smola & Schoelkopf 2000, eq. (31)).

    It is also the Rayleigh quotient of sparse kernel PCA by matching pursuit (Hussain & Shawe-Taylor, Algorithm 1).
    """

    needs_squares = True

    def values(self, candidates: Candidates) -> Float:
        return np.asarray(np.maximum(candidates.squares, 0.0) / candidates.pivots)


@dataclass(frozen=True)
class ColumnNorm(Score):
    """``C_ii = |R_i|^2`` (Smola & Schoelkopf 2000, eq. (32))."""

    needs_squares = True

    def values(self, candidates: Candidates) -> Float:
        return np.maximum(candidates.squares, 0.0)


@dataclass(frozen=True)
class Pivot(Score):
    """``S_ii``: the residual diagonal, a lower bound of the function-space gain (Fine & Scheinberg 2001)."""

    def values(self, candidates: Candidates) -> Float:
        return candidates.pivots


@dataclass(frozen=True)
class SparseFeatures(Score):
    """``C_ii / (1 + |T_i|_1)^2``: sparse kernel feature analysis, the residual over the 1-norm of its coefficients.

    ``R_i = k_i - sum_j T_ij k_j`` over the basis (Smola & Schoelkopf 2000, section 7.1, which gives no formula).
    """

    needs_squares = True
    needs_coefficients = True

    def values(self, candidates: Candidates) -> Float:
        return np.asarray(np.maximum(candidates.squares, 0.0) / (1.0 + candidates.coefficients) ** 2)


@dataclass(frozen=True)
class Frobenius(Score):
    """``sum_j B_ij^2 / B_ii``, j over the pool: decrease of the squared Frobenius norm of the projected columns.

    Smola & Schoelkopf 2000, eq. (27). The pool is a uniform sample; its sum times m / k estimates the sum over all
    columns.
    """

    needs_cross = True

    def values(self, candidates: Candidates) -> Float:
        B = candidates.cross
        return _over(np.einsum("ij,ij->i", B, B), np.diagonal(B).copy())


@dataclass(frozen=True)
class Kronecker(Score):
    """``|k_i|^2``, without deflation: the gain in the metric in which picked columns are exact and all others are 0.

    Smola & Schoelkopf 2000, section 3.3. It is a null baseline, because it ignores the previous picks.
    """

    needs_squares = True

    def values(self, candidates: Candidates) -> Float:
        return np.maximum(candidates.first_squares, 0.0)


@dataclass(frozen=True)
class Mixture(Score):
    """``kappa |D_i|^2 / S_ii / (rho + B_ii / S_ii) / |Y|^2 + (1 - kappa) C_ii / S_ii / tr K``.

    With rho > 0 the first term is the exact gain of greedy Gaussian process regression (Smola & Bartlett 2001). With
    rho = 0 it is ``|D_i|^2 / B_ii``, and the sum is the criterion of CSI with exact gains (Bach & Jordan 2005, section
    4).

    Parameters
    ----------
    kappa : weight of the prediction gain; 1 - kappa is the weight of the trace gain.
    rho : ridge of the projection, in units of the mean of k(x, x); None for `FIRST_RHO` in the first round and then the
        alpha that a ridge model on the basis chooses from the same sums.
    """

    kappa: float
    rho: float | None = 0.0

    @property
    def needs_squares(self) -> bool:  # type: ignore[override]
        return self.kappa < 1.0

    @property
    def needs_projection(self) -> bool:  # type: ignore[override]
        return self.kappa > 0.0

    def values(self, candidates: Candidates) -> Float:
        trace, targets = self._weighed(candidates)
        return np.asarray(targets + trace)

    def parts(self, candidates: Candidates) -> Float:
        """Terms (2, k) of the trace and of the targets, if both have a weight > 0."""
        return np.stack(self._weighed(candidates)) if 0.0 < self.kappa < 1.0 else super().parts(candidates)

    def _weighed(self, candidates: Candidates) -> tuple[Float, Float]:
        pivots = candidates.pivots
        trace, targets = np.zeros(len(pivots)), np.zeros(len(pivots))
        if self.kappa > 0.0:
            left = candidates.rho * pivots + np.maximum(candidates.left, 0.0)
            targets = self.kappa / candidates.square * _over(candidates.explained, left)
        if self.kappa < 1.0:
            trace = (1.0 - self.kappa) / candidates.trace * np.maximum(candidates.squares, 0.0) / pivots
        return trace, targets
