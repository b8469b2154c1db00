"""Kernel matching pursuit on a data matrix in memory: columns of a dictionary D against targets Y.

Let r be the residual of the targets and P the projector on the span of the functions picked so far. Let A_ii = |d_i|^2
and B_ii = |(I - P) d_i|^2. A pick is the column with the largest score (summed over targets)::

    basic          (d_i^T r)^2 / A_ii      r <- r - t a d_i,  a = d_i^T r / A_ii; the same column may come again
    back-fitting   (d_i^T r)^2 / A_ii      r <- (I - P) Y, by least squares on all functions picked
    pre-fitting    (d_i^T r)^2 / B_ii      the same: the pick is the one that leaves the least

(Vincent & Bengio 2002; Popovici, Bengio & Thiran 2005, Algorithm 1; ALGORITHMS 4.) The shrinkage t of Popovici et al.,
eq. (4), is for basic only, as least squares would undo it: a step reduces |r|^2 by ``t (2 - t)`` of the score.

D and Y may be any arrays with the same inner products: the m rows, or the triangular factor of a sweep. If functions
were picked before, D and Y are the parts outside their span, and `norms` are the A_ii of the whole columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.pursuit.choices import VARIANTS
from streamkernel.type_aliases import Bool, Float, Int
from streamkernel.wording import option

DEPENDENT = 1e-10  # share of A_ii: a column with a smaller residual is in the span of those picked (ALGORITHMS 4)
_REFRESH = 1e-4  # share of B_ii at which an updated value is computed anew
_NOTHING = 1e-28  # share of |Y|^2 that counts as rounding


@dataclass(frozen=True)
class Pursued:
    """The picks, in order.

    Attributes
    ----------
    order : (c,) positions of the columns; basic may repeat them.
    gains : (c,) decrease of the sum of squares by each pick, over all targets.
    weakness : (c,) square root of the pick's score over the largest score of all columns, of any group: Temlyakov's t
        of a weak greedy algorithm. 1 where all compete.
    rss : (c + 1, d) residual sum of squares of each target before each pick, and after the last.
    steps : (c, d) coefficients that basic adds to its functions, after shrinkage, one row per pick.
    ended : "count"; "rank": no independent column is left; "residual": nothing is left to explain, or at most
        `stop_at`; "digits": the residual of the best column has lost its digits (below `digits` of its start).
    """

    order: Int
    gains: Float
    weakness: Float
    rss: Float
    steps: Float
    ended: str

    def __len__(self) -> int:
        return len(self.order)


def checked_variant(variant: str, shrinkage: float) -> None:
    """Refuse an unknown variant, a shrinkage outside (0, 1], or one where least squares would undo it."""
    if variant not in VARIANTS:
        raise ParameterError(
            f"{option('variant')} must be one of {', '.join(VARIANTS)}, not {variant!r}", value=variant
        )
    if not 0.0 < shrinkage <= 1.0:
        raise ParameterError(f"{option('shrinkage')} must be > 0 and <= 1, not {shrinkage!r}", value=shrinkage)
    if shrinkage != 1.0 and variant != "basic":
        raise ParameterError(
            f"{option('shrinkage')} = {shrinkage!r} means nothing to {variant}, which fits all coefficients again; "
            "it is of the variant basic"
        )


def pursue(
    D: Float,
    Y: Float,
    count: int,
    *,
    variant: str = "pre-fitting",
    shrinkage: float = 1.0,
    norms: Float | None = None,
    groups: Int | None = None,
    allowed: Bool | None = None,
    stop_at: float = 0.0,
    digits: float = 0.0,
) -> Pursued:
    """Up to `count` greedy picks of columns.

    Parameters
    ----------
    D : (r, N) columns, without their parts in the span of earlier picks.
    Y : (r, d) targets, likewise, in units in which their squares may be added.
    variant, shrinkage : as above.
    norms : (N,) A_ii; None for those of D.
    groups : (N,) sub-pool of each column, or None where all compete: each pick is from the next sub-pool only
        (stochastic matching pursuit: a fresh sub-pool for each pick). -1 for columns in no sub-pool.
    allowed : (N,) columns that may be picked; None for all.
    stop_at : end when the residual squares of all targets together are at most this.
    digits : the picks end when the best column's residual is below this share of its start, because D was computed from
        sums without more digits. 0 for D from an orthogonal factorisation.

    Raises
    ------
    ParameterError
        See `checked_variant`.
    """
    checked_variant(variant, shrinkage)
    state = _Columns(D, Y, variant, norms)
    first = state.left.copy()
    free = np.ones(D.shape[1], dtype=bool) if allowed is None else allowed.copy()
    total = float((Y**2).sum())
    order: list[int] = []
    gains: list[float] = []
    weakness: list[float] = []
    steps: list[Float] = []
    rss = [state.rss()]
    ended, group, spent = "count", -1, -1
    while len(order) < count:
        if rss[-1].sum() <= max(stop_at, _NOTHING * total):
            ended = "residual"
            break
        alive = free & state.independent()
        scores = np.where(alive, state.scores(), -1.0)
        competing = scores
        if groups is not None:
            later = groups[alive & (groups > spent)]
            if len(later) == 0:
                ended = "rank"
                break
            group = int(later.min())
            competing = np.where(groups == group, scores, -1.0)
        i = int(np.argmax(competing))
        if competing[i] < 0.0:
            ended = "rank"
            break
        if state.left[i] < digits * first[i]:
            ended = "digits"
            break
        if state.refreshed(alive):
            # Some scores were of columns that have lost digits: repeat with the recomputed residuals.
            continue
        spent = group
        best, score = float(scores.max()), float(competing[i])
        weakness.append(np.sqrt(score / best) if best > 0.0 else 1.0)
        steps.append(state.take(i, shrinkage))
        order.append(i)
        rss.append(state.rss())
        gains.append(float((rss[-2] - rss[-1]).sum()))
        if variant != "basic":
            free[i] = False
    return Pursued(
        np.asarray(order, dtype=np.int64),
        np.asarray(gains),
        np.asarray(weakness),
        np.asarray(rss),
        np.asarray(steps).reshape(-1, Y.shape[1]),
        ended,
    )


class _Columns:
    """The residuals of columns and targets. The columns are not changed: Q holds the span of the picks."""

    def __init__(self, D: Float, Y: Float, variant: str, norms: Float | None) -> None:
        self.D = D
        self.residual = np.array(Y, dtype=np.float64)
        self.variant = variant
        self.left: Float = np.einsum("ij,ij->j", D, D)
        self.norms = self.left.copy() if norms is None else norms
        self.products: Float = D.T @ self.residual
        self._measured = self.left.copy()
        self._Q: list[Float] = []

    def rss(self) -> Float:
        squares: Float = np.einsum("ij,ij->j", self.residual, self.residual)
        return squares

    def independent(self) -> Bool:
        """Mask of the columns whose residual is more than rounding."""
        found: Bool = (self.left > DEPENDENT * self.norms) & (self.norms > 0.0)
        return found

    def scores(self) -> Float:
        divisor = self.left if self.variant == "pre-fitting" else self.norms
        numerator = np.einsum("ij,ij->i", self.products, self.products)
        return np.asarray(numerator / np.where(divisor > 0.0, divisor, 1.0))

    def refreshed(self, alive: Bool) -> bool:
        """Recompute the residuals of columns that updates have nearly reduced to 0; False where there are none."""
        lost = np.flatnonzero(alive & (self.left < _REFRESH * self._measured))
        if len(lost) == 0:
            return False
        columns = self._projected(self.D[:, lost])
        self.left[lost] = np.einsum("ij,ij->j", columns, columns)
        self._measured[lost] = self.left[lost]
        return True

    def _projected(self, columns: Float) -> Float:
        """Apply ``(I - Q Q^T)`` to columns twice, which is enough for orthogonality to rounding."""
        if not self._Q:
            return columns.copy()
        Q = np.stack(self._Q, axis=1)
        columns = columns - Q @ (Q.T @ columns)
        return np.asarray(columns - Q @ (Q.T @ columns))

    def take(self, i: int, shrinkage: float) -> Float:
        """Pick a column; return its coefficients (d,) for basic, else zeros."""
        if self.variant == "basic":
            step: Float = shrinkage * self.products[i] / self.norms[i]
            self.residual -= np.outer(self.D[:, i], step)
            self.products = self.D.T @ self.residual
            return step
        column = self._projected(self.D[:, [i]])[:, 0]
        q = column / np.linalg.norm(column)
        self._Q.append(q)
        self.residual -= np.outer(q, q @ self.residual)
        self.products = self.D.T @ self.residual
        self.left = np.maximum(self.left - (q @ self.D) ** 2, 0.0)
        self.left[i] = 0.0
        return np.zeros(self.residual.shape[1])
