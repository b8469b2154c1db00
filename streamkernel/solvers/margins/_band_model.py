"""The model of a smooth objective between two sweeps: exact for the rows of a band, of second order for all others.

With gradient g and Hessian H of P at b, and the rows i of a band, whose losses have the slopes l' and curvatures l''::

    m(d) = q^T d + 1/2 d^T A d + sum_band w loss(y, g_i^T (b + d))
    q = g - sum_band w l' g_i        A = H - sum_band w l'' g_i g_i^T

A is positive definite: it has the ones of the penalty and the curvatures of the other rows. So m is convex, its slope
at 0 is that of P, and without a band its minimum is Newton's step. Where the second-order expansion is exact for all
other rows, as for squared losses of which none passes its kink, the minimum of m is that of P (ALGORITHMS 22).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import cholesky, mirror_upper, solve_lower, solve_lower_t
from streamkernel.reductions.likelihoods import add_weighted_gram
from streamkernel.reductions.margins import BandRows, Smooth
from streamkernel.reductions.sums import Features
from streamkernel.type_aliases import Float, Int

_MOST_STEPS = 50
_FLAT = 0.1  # share of the slope at the start of a line that may be left at the end of the search along it
_BISECTIONS = 30


def newton_step(system: Float, gradient: Float) -> Float:
    """``-system^-1 gradient``."""
    L = cholesky(system, "the Hessian of the losses", "take a smaller C, or smaller row weights")
    return -solve_lower_t(L, solve_lower(L, gradient))


def band_step(
    features: Features, loss: Smooth, band: BandRows, b: Float, gradient: Float, system: Float, enough: float
) -> Float:
    """The minimum d of m, by Newton's method.

    Parameters
    ----------
    b : (n + 1,) coefficients of P's gradient and Hessian; the last is the constant.
    gradient : (q,), system : (q, q) at b, for the first q coefficients, which may move: n or n + 1.
    enough : squared length of the gradient of m at which to stop.
    """
    rows = _Rows(features.of(band.X), len(gradient))
    y, w = band.targets, band.weights
    f0 = rows.values(b)
    at = loss.at(y, f0)
    curvature = w * at.curvature
    A = system - rows.gram(curvature)
    q = gradient - rows.sums(w * at.slope)
    d, Ad, f = np.zeros_like(gradient), np.zeros_like(gradient), f0
    slope, hessian = gradient, system
    for _ in range(_MOST_STEPS):
        step = newton_step(hessian, slope)
        change, A_step = rows.values(step), A @ step
        length = _Along(loss, y, w, f, change, float((q + Ad) @ step), float(step @ A_step)).length()
        d, Ad, f = d + length * step, Ad + length * A_step, f + length * change
        at = loss.at(y, f)
        slope = q + Ad + rows.sums(w * at.slope)
        if float(slope @ slope) <= enough:
            break
        # Few rows pass a kink in one step: the Hessian changes by theirs.
        changed = np.flatnonzero(w * at.curvature != curvature)
        if 2 * len(changed) < np.count_nonzero(at.curvature):
            hessian = hessian + rows.gram((w * at.curvature - curvature)[changed], changed)
        else:
            hessian = A + rows.gram(w * at.curvature)
        curvature = w * at.curvature
    return d


@dataclass(frozen=True)
class _Along:
    """m along a step: band rows with targets y, weights w and values ``f + t change``; linear and square terms of d."""

    loss: Smooth
    y: Float
    w: Float
    f: Float
    change: Float
    linear: float
    square: float

    def slope(self, t: float) -> float:
        """Derivative by the length t: it rises, and is negative at 0."""
        at = self.loss.at(self.y, self.f + t * self.change)
        return self.linear + t * self.square + float((self.w * at.slope) @ self.change)

    def length(self) -> float:
        """Length in (0, 1] at which m is nearly least."""
        least = _FLAT * abs(self.slope(0.0))
        if self.slope(1.0) <= least:
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            found = self.slope(middle)
            if abs(found) <= least:
                return middle
            low, high = (low, middle) if found > 0.0 else (middle, high)
        return low or high


class _Rows:
    """Features [G, 1] of the band, of which the first q columns are used."""

    def __init__(self, G: Float, q: int) -> None:
        self.G, self.q, self.n = G, q, G.shape[1]

    def values(self, b: Float) -> Float:
        """``[G, 1] b`` for all n + 1 or the first q coefficients."""
        f = self.G @ b[: self.n]
        return np.asarray(f + b[self.n] if len(b) > self.n else f)

    def sums(self, v: Float) -> Float:
        """``[G, 1]^T v``, (q,)."""
        return np.append(v @ self.G, v.sum())[: self.q]

    def gram(self, weights: Float, some: Int | None = None) -> Float:
        """``[G, 1]^T diag(weights) [G, 1]``, (q, q), of some rows with weights of any sign."""
        G = self.G if some is None else self.G[some]
        signed = np.column_stack([np.maximum(weights, 0.0), np.maximum(-weights, 0.0)])
        parts = np.zeros((2, self.n + 1, self.n + 1))
        add_weighted_gram(G, signed, parts)
        return mirror_upper(parts[0] - parts[1])[: self.q, : self.q]
