"""Signal and noise variances that maximise the evidence, from the sums of one sweep.

Prior variance s, noise variance v, ``alpha = v / s``, ``H = V diag(h) V^T``, ``c = V^T g``, m rows; T is the residual
trace for the variational bound and 0 for the evidence::

    Q(alpha) = YY - sum_j c_j^2 / (h_j + alpha)
    -2 F     = m log v + Q / v + sum_j log(1 + h_j / alpha) + T / alpha + constant

The penalty of the bound depends on alpha only, so that ``v = Q / m`` maximises both objectives for a given alpha. A
function of one number remains. It is evaluated on a grid, from the smallest alpha above rounding to an alpha at which
the rows have no effect. The zero of its slope near the best grid point is then the result. With
``Q' = alpha sum_j c_j^2 / (h_j + alpha)^2`` and the best v::

    d(-2 F) / d log alpha = m Q' / Q - sum_j h_j / (h_j + alpha) - T / alpha

Titsias 2009, eq. (9), and ALGORITHMS 10.1, both maximised over the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used: this one takes long

from streamkernel.type_aliases import Float

_STEP = 0.25  # of the grid, in log alpha: the terms of F change over distances of 1 and more
_BEYOND = 1e6  # largest alpha of the grid, over the largest eigenvalue: the rows have no effect there


@dataclass(frozen=True)
class EvidenceCurve:
    """F as a function of alpha, for one target, or for targets that share their variances.

    Parameters
    ----------
    values : (n,) eigenvalues h, ascending, at least 0.
    squares : (n,) ``c^2``; square : YY. For several targets, their means.
    count : number of rows m, or the sum of their weights.
    residual_trace : residual trace T, or 0 for the evidence.
    least_noise : smallest noise variance that is not rounding.
    signal, noise : fixed variances; None for a variance that is chosen.
    """

    values: Float
    squares: Float
    square: float
    count: float
    residual_trace: float
    least_noise: float
    signal: float | None = None
    noise: float | None = None

    def noise_at(self, alpha: Float) -> Float:
        """The best noise variance for each alpha (k,), or the fixed one."""
        if self.noise is not None:
            return np.full(alpha.shape, self.noise)
        if self.signal is not None:
            return alpha * self.signal
        return np.maximum(self._left(alpha) / self.count, self.least_noise)

    def _left(self, alpha: Float) -> Float:
        """Q for each alpha, (k,)."""
        return self.square - (1.0 / (self.values + alpha[:, None])) @ self.squares

    def score(self, alpha: Float) -> Float:
        """``-2 F`` for each alpha (k,), up to a constant."""
        noise = self.noise_at(alpha)
        spread = np.log1p(self.values / alpha[:, None]).sum(axis=1)
        return np.asarray(self.count * np.log(noise) + self._left(alpha) / noise + spread + self.residual_trace / alpha)

    def slope(self, alpha: float) -> float:
        """``d(-2 F) / d log alpha``, valid where the noise variance is above `least_noise`."""
        shrunk = self.values + alpha
        noise = float(self.noise_at(np.array([alpha]))[0])
        by_data = alpha * float((self.squares / shrunk**2).sum()) / noise
        if self.signal is not None:
            by_data += self.count - float(self._left(np.array([alpha]))[0]) / noise
        return by_data - float((self.values / shrunk).sum()) - self.residual_trace / alpha

    def best(self, smallest: float) -> float:
        """The alpha above `smallest` that maximises F; the largest one of several."""
        grid = self._grid(smallest)
        score = self.score(grid)
        at = len(grid) - 1 - int(np.argmin(score[::-1]))
        low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, len(grid) - 1)])
        if not self.slope(low) < 0.0 < self.slope(high):
            return float(grid[at])
        found = float(
            np.exp(scipy.optimize.brentq(lambda log_alpha: self.slope(np.exp(log_alpha)), np.log(low), np.log(high)))
        )
        return found if self.score(np.array([found]))[0] <= score[at] else float(grid[at])

    def _grid(self, smallest: float) -> Float:
        top = float(self.values[-1]) if len(self.values) and self.values[-1] > 0.0 else 1.0
        low, high = max(10.0 * smallest, 1e-13 * top), _BEYOND * top
        if self.signal is not None:
            high = max(high, 10.0 * self.square / (self.count * self.signal))
        points = 1 + max(2, int(np.ceil(np.log(high / low) / _STEP)))
        return np.geomspace(low, high, points)
