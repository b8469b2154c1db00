"""Signal and noise variance where the evidence is largest, from the sums of one sweep.

Prior variance s, noise variance v, ``alpha = v / s``, ``H = V diag(h) V^T``, ``c = V^T g``, m rows; T is the residual
trace for the variational bound and 0 for the evidence::

    Q(alpha) = YY - sum_j c_j^2 / (h_j + alpha)
    -2 F     = m log v + Q / v + sum_j log(1 + h_j / alpha) + T / alpha + constant

The bound's penalty knows alpha alone, so that ``v = Q / m`` is best for it too, and what is left is a function of one
number. It is looked at from the smallest alpha that means anything to where the rows say nothing, and refined about
its best point to where the slope is zero; with ``Q' = alpha sum_j c_j^2 / (h_j + alpha)^2``, v at its best::

    d(-2 F) / d log alpha = m Q' / Q - sum_j h_j / (h_j + alpha) - T / alpha

Titsias 2009, eq. (9); ALGORITHMS 10.1, the noise maximised out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

__all__ = ["EvidenceCurve"]

Float = NDArray[np.float64]

_STEP = 0.25  # of the grid, in log alpha: the terms of F change over distances of 1 and more
_BEYOND = 1e6  # times the largest eigenvalue: the rows say nothing there


@dataclass(frozen=True)
class EvidenceCurve:
    """F of one target, or of targets that share their variances, as a function of alpha.

    Parameters
    ----------
    values : (n,) eigenvalues h, ascending, at least 0.
    squares : (n,) ``c^2``; square : YY. Of several targets, their means.
    count : rows m.
    residual_trace : T.
    least_noise : below which the noise variance is rounding.
    signal, noise : a variance that is given is not moved.
    """

    values: Float
    squares: Float
    square: float
    count: int
    residual_trace: float
    least_noise: float
    signal: float | None = None
    noise: float | None = None

    def noise_at(self, alpha: Float) -> Float:
        """The best noise variance for each alpha (k,), or the one that is given."""
        if self.noise is not None:
            return np.full(alpha.shape, self.noise)
        if self.signal is not None:
            return alpha * self.signal
        return np.maximum(self._left(alpha) / self.count, self.least_noise)

    def _left(self, alpha: Float) -> Float:
        """Q (k,)."""
        return self.square - (1.0 / (self.values + alpha[:, None])) @ self.squares

    def score(self, alpha: Float) -> Float:
        """``-2 F`` for each alpha (k,), less a constant."""
        noise = self.noise_at(alpha)
        spread = np.log1p(self.values / alpha[:, None]).sum(axis=1)
        return np.asarray(self.count * np.log(noise) + self._left(alpha) / noise + spread + self.residual_trace / alpha)

    def slope(self, alpha: float) -> float:
        """``d(-2 F) / d log alpha``, where the noise variance is not at its least."""
        shrunk = self.values + alpha
        noise = float(self.noise_at(np.array([alpha]))[0])
        by_data = alpha * float((self.squares / shrunk**2).sum()) / noise
        if self.signal is not None:
            by_data += self.count - float(self._left(np.array([alpha]))[0]) / noise
        return by_data - float((self.values / shrunk).sum()) - self.residual_trace / alpha

    def best(self, smallest: float) -> float:
        """The alpha where F is largest, of those above `smallest`; the largest of several."""
        grid = self._grid(smallest)
        score = self.score(grid)
        at = len(grid) - 1 - int(np.argmin(score[::-1]))
        low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, len(grid) - 1)])
        if not self.slope(low) < 0.0 < self.slope(high):
            return float(grid[at])
        found = float(np.exp(brentq(lambda log_alpha: self.slope(np.exp(log_alpha)), np.log(low), np.log(high))))
        return found if self.score(np.array([found]))[0] <= score[at] else float(grid[at])

    def _grid(self, smallest: float) -> Float:
        top = float(self.values[-1]) if len(self.values) and self.values[-1] > 0.0 else 1.0
        low, high = max(10.0 * smallest, 1e-13 * top), _BEYOND * top
        if self.signal is not None:
            high = max(high, 10.0 * self.square / (self.count * self.signal))
        points = 1 + max(2, int(np.ceil(np.log(high / low) / _STEP)))
        return np.geomspace(low, high, points)
