"""Greedy picks inside a pool, from its sums alone (ALGORITHMS 1.3, 1.8, 1.9).

Candidate i scores, with everything already picked projected out::

    kappa * |D_i|^2 / S_ii / (rho + B_ii / S_ii)  +  (1 - kappa) * C_ii / S_ii / trace

``A = H + rho I``,  ``B = C - E^T A^-1 E``,  ``D = F - E^T A^-1 g``: what the candidate's residual column explains of
the standardised targets beyond the basis, ridge-projected (greedy GPR row of the card), mixed with what it takes off
the residual trace (Smola & Schoelkopf 2000, eq. (31)). The rest of the state is deflated lazily: pick t costs
O(k t), reads rows of the starting matrices and stored vectors only, and never touches a row of the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel.linalg import RidgePath
from streamkernel.reductions import PoolSums

__all__ = ["Mixture", "Picks", "lazy_picks"]

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Mixture:
    """The objective: kappa = 0 the residual trace, kappa = 1 prediction, between them a mixture.

    Parameters
    ----------
    kappa : share of the prediction gain.
    rho : ridge of the projection, in the kernel's units.
    scale : (d,) spread of each target; the targets are divided by it.
    trace : of the kernel matrix, for the share of the trace gain.
    chosen : once there is a basis, rho is the alpha that a ridge model on it would choose from the same sums.
    """

    kappa: float
    rho: float
    scale: Float
    trace: float
    chosen: bool = False


@dataclass(frozen=True)
class Picks:
    """Picks in order.

    Attributes
    ----------
    order : (t,) positions in the pool.
    gains : (t,) scores at the time of picking.
    trace_gains : (t,) what each pick took off the residual trace (NaN where it was not followed).
    ended : "count", "digits" (fresh sums are needed), "rank" (no independent candidate is left) or "tolerance".
    """

    order: NDArray[np.int64]
    gains: Float
    trace_gains: Float
    ended: str


class _Deflated:
    """Rows of ``M0 - sum over picks`` for a symmetric matrix that each pick deflates by f on both sides.

    ``M <- M - f v^T - v f^T + c f f^T`` with ``v = M[:, j] / s`` and ``c = v_j / s``: both C and (before its
    projection) B. A column is read off the starting matrix, the f of the picks and their v::

        M[:, j] = M0[:, j] - sum_t f_tj v_t - sum_t h_tj f_t,    h_t = v_t - c_t f_t
    """

    def __init__(self, start: Float, count: int) -> None:
        self.start = start
        self.diagonal = np.diagonal(start).copy()
        self.stored = np.empty((count, len(start)))
        self.corner = np.empty(count)

    def weights(self, t: int, j: int, F: Float) -> tuple[Float, Float]:
        """What column j takes of the stored v and of the f of the t picks so far."""
        f = F[:t, j]
        return f, self.stored[:t, j] - self.corner[:t] * f

    def column(self, t: int, j: int, s: float, F: Float) -> Float:
        """Current column j over s."""
        of_v, of_f = self.weights(t, j, F)
        return np.asarray((self.start[j] - of_v @ self.stored[:t] - of_f @ F[:t]) / s)

    def deflate(self, t: int, v: Float, j: int, s: float, f: Float) -> None:
        self.stored[t] = v
        self.corner[t] = v[j] / s
        self.diagonal -= f * (2.0 * v - self.corner[t] * f)


class _Projected(_Deflated):
    """The same with the ridge projection of each new feature taken out: ``B <- B - h h^T / a``, ``a = rho + c``."""

    def __init__(self, start: Float, count: int, rho: float) -> None:
        super().__init__(start, count)
        self.rho = rho

    def weights(self, t: int, j: int, F: Float) -> tuple[Float, Float]:
        of_v, h = super().weights(t, j, F)
        along = h / (self.rho + self.corner[:t])
        return of_v + along, h - along * self.corner[:t]

    def deflate(self, t: int, v: Float, j: int, s: float, f: Float) -> None:
        super().deflate(t, v, j, s, f)
        self.diagonal -= self.feature(t, f) ** 2 / (self.rho + self.corner[t])

    def feature(self, t: int, f: Float) -> Float:
        """h of pick t: what the candidates have in common with the new feature beyond f."""
        return np.asarray(self.stored[t] - self.corner[t] * f)


def _score(
    mixture: Mixture, rho: float, square: float, D: Float | None, b: Float | None, c: Float | None, pivots: Float
) -> Float:
    """Score of each candidate; D and b are needed for kappa > 0, c for kappa < 1."""
    score = np.zeros(len(pivots))
    if D is not None and b is not None:
        explained = np.einsum("ij,ij->i", D, D) / pivots
        left = rho + np.maximum(b, 0.0) / pivots
        # With rho = 0 a candidate of which nothing is left explains nothing.
        score += mixture.kappa / square * np.divide(explained, left, out=np.zeros_like(left), where=left > 0.0)
    if c is not None and mixture.kappa < 1.0:
        score += (1.0 - mixture.kappa) / mixture.trace * np.maximum(c, 0.0) / pivots
    return score


def _projected_start(sums: PoolSums, mixture: Mixture) -> tuple[Float, Float, float]:
    """B and D of the pool with the basis ridge-projected out, and the ridge."""
    if len(sums.H) == 0:
        return sums.C, sums.F / mixture.scale, mixture.rho
    # By eigenvalues, clipped at 0: sums of float32 products may have lost the smallest ones to rounding.
    path = RidgePath.of(sums.H, sums.g, np.diagonal(sums.YY), sums.weight)
    rho = path.choose(mixture.scale**2) if mixture.chosen else mixture.rho
    along = path.vectors.T @ sums.E
    weight = (path.values + rho)[:, None]
    shrunk = np.divide(along, weight, out=np.zeros_like(along), where=weight > 0.0)
    return sums.C - along.T @ shrunk, (sums.F - shrunk.T @ path.rotated) / mixture.scale, rho


def lazy_picks(
    sums: PoolSums,
    mixture: Mixture,
    count: int,
    *,
    diagonal: Float,
    pivot_tolerance: float,
    digits: float,
    groups: NDArray[np.int64] | None = None,
    stop_after: float = np.inf,
) -> Picks:
    """Up to `count` greedy picks.

    Parameters
    ----------
    sums : of `PoolGram`.
    mixture : the objective.
    diagonal : (k,) ``k(x_i, x_i)`` of the candidates.
    pivot_tolerance : candidates with ``S_ii <= pivot_tolerance * k_ii`` depend on the basis and are masked.
    digits : end when the best candidate's sums have fallen to this share of where they began: what is left of them
        is rounding, and fresh sums are needed. Never merely mask such a candidate: it is alive.
    groups : (k,) restricts pick t to the candidates of group t (split pools).
    stop_after : end when the trace gains add up to this much.
    """
    k = len(sums.S)
    count = min(count, k)
    follow_trace = mixture.kappa < 1.0 or np.isfinite(stop_after)
    sd = np.diagonal(sums.S).copy()
    sd_start = sd.copy()
    F = np.empty((count, k))
    C = _Deflated(sums.C, count) if follow_trace else None
    c_start = np.maximum(np.diagonal(sums.C), 0.0)
    B: _Projected | None = None
    D, rho = np.zeros((k, 0)), mixture.rho
    if mixture.kappa > 0.0:
        start, D, rho = _projected_start(sums, mixture)
        B = _Projected(start, count, rho)
    # |Y|^2 of the standardised targets; 1 where there are none, or they are constant.
    square = float((np.diagonal(sums.YY) / mixture.scale**2).sum()) or 1.0
    free = np.ones(k, dtype=bool)
    order: list[int] = []
    gains: list[float] = []
    trace_gains: list[float] = []
    ended = "count"
    for t in range(count):
        alive = free & (sd > pivot_tolerance * diagonal)
        if groups is not None:
            alive &= groups == t
        if not alive.any():
            ended = "rank"
            break
        pivots = np.where(alive, sd, 1.0)
        score = _score(
            mixture,
            rho,
            square,
            D if B is not None else None,
            None if B is None else B.diagonal,
            None if C is None else C.diagonal,
            pivots,
        )
        j = int(np.argmax(np.where(alive, score, -1.0)))
        worn = sd[j] < digits * sd_start[j] or (
            C is not None and mixture.kappa < 1.0 and C.diagonal[j] < digits * c_start[j]
        )
        if worn and t > 0:
            ended = "digits"
            break
        s = float(np.sqrt(sd[j]))
        f = (sums.S[j] - F[:t, j] @ F[:t]) / s
        taken = float(C.diagonal[j] / sd[j]) if C is not None else np.nan
        for part in (B, C):
            if part is not None:
                part.deflate(t, part.column(t, j, s, F), j, s, f)
        if B is not None:
            D = D - np.outer(f + B.feature(t, f) / (B.rho + B.corner[t]), D[j] / s)
        sd -= f**2
        F[t] = f
        free[j] = False
        order.append(j)
        gains.append(float(score[j]))
        trace_gains.append(taken)
        if np.isfinite(stop_after) and np.nansum(trace_gains) >= stop_after:
            ended = "tolerance"
            break
    return Picks(np.asarray(order, np.int64), np.asarray(gains), np.asarray(trace_gains), ended)
