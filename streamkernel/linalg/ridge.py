"""Ridge regression for every alpha, from its sums, by one tridiagonal form.

With whitened features G (m, n), ``H = G^T W G = Q T Q^T`` of eigenvalues s, ``g = G^T W Y`` and ``YY = Y^T W Y``::

    beta(alpha) = Q x,   (T + alpha I) x = Q^T g
    RSS(alpha)  = YY - 2 beta^T g + beta^T H beta = YY - g^T beta - alpha beta^T beta
    edf(alpha)  = sum_j s_j / (s_j + alpha)  (+ 1 with an intercept)
    GCV(alpha)  = m (share RSS(alpha)) / (m - c edf(alpha))^2
    evidence    -2 log p = m log( (YY - g^T (H + alpha I)^-1 g) / m ) + sum_j log(1 + s_j / alpha) + constant

GCV: Golub, Heath & Wahba 1979, eq. (1.4), with c = 1. The choice of alpha uses c = 1.4, because with c = 1 GCV
undersmooths if the basis is large for the data or was picked by the targets (Cummins, Filloon & Nychka 2001; Kim & Gu
2004). Evidence: ALGORITHMS 10.1, maximised over the noise. Smola & Schoelkopf 2000, eq. (7), in whitened coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.linalg.tridiagonal import Tridiagonal
from streamkernel.type_aliases import Float

_INFLATION = 1.4
# 17 alphas from one neighbour of the best to the other: each look makes the interval 8 times shorter, and three find
# alpha to 1e-3. SciPy's minimiser takes one alpha at a time, and .1 to .2 s of a first fit to load.
_LOOKS, _ALPHAS = 3, 17


@dataclass(frozen=True)
class RidgePath:
    """The reduced sums, from which solutions and scores follow for every alpha.

    Parameters
    ----------
    form : H as ``Q T Q^T``; turned : (n, d), ``Q^T g``.
    values : (n,) eigenvalues of H, clipped at 0, ascending.
    square : (d,) diagonal of YY.
    count : number of rows m; the number of independent rows if some are copies.
    intercept_df : degrees of freedom of an intercept that was projected out (0 or 1).
    rounding : size of the most negative eigenvalue of H, which is rounding.
    share : `count` over the number of all rows, whose squared errors RSS adds: with copies, too, GCV is a mean square.
    """

    form: Tridiagonal
    turned: Float
    values: Float
    square: Float
    count: float
    intercept_df: int = 0
    rounding: float = 0.0
    share: float = 1.0

    @classmethod
    def of(
        cls, H: Float, g: Float, square: Float, rows: float, intercept_df: int = 0, *, share: float = 1.0
    ) -> RidgePath:
        """Reduce the sums of so many rows; g is (n, d), the other arguments are those of the class."""
        form = Tridiagonal.of(H, "the whitened normal equations")
        # H is positive semidefinite: how far its least eigenvalue is below 0 measures the rounding of all of them.
        rounding = max(0.0, -float(form.values[0])) if len(form.values) else 0.0
        return cls(
            form,
            form.to_form(g),
            np.maximum(form.values, 0.0),
            square,
            share * rows,
            intercept_df,
            rounding,
            share,
        )

    @cached_property
    def vectors(self) -> Float:
        """Eigenvectors V of H, (n, n), for work beside solutions: they take twice the time of the form."""
        return self.form.vectors()

    @cached_property
    def rotated(self) -> Float:
        """``V^T g``, (n, d)."""
        found: Float = self.vectors.T @ self.form.from_form(self.turned)
        return found

    @property
    def smallest_alpha(self) -> float:
        """Alpha below which the solution is rounding: n eps times the largest eigenvalue, or 10 times `rounding`."""
        eps, tiny = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)
        top = float(self.values[-1]) if len(self.values) else 1.0
        return max(max(len(self.values), 1) * eps * max(top, tiny), 10.0 * self.rounding)

    def carries(self, alpha: float) -> bool:
        """True if `alpha` is not lost in the rounding of H, to whose smallest eigenvalue it is added."""
        return not len(self.values) or self.values[0] > self.smallest_alpha or alpha >= self.least_alpha

    @property
    def least_alpha(self) -> float:
        """Smallest alpha that is above the rounding of the largest eigenvalue."""
        eps, top = float(np.finfo(np.float64).eps), float(self.values[-1]) if len(self.values) else 0.0
        return 4.0 * max(eps * top, self.rounding)

    def beta(self, alpha: float) -> Float:
        """Coefficients of the whitened features, (n, d)."""
        return self.form.from_form(self.form.solve(self.turned, np.array([alpha]))[2])

    def effective_df(self, alpha: float) -> float:
        """Trace of the hat matrix."""
        return float(self.effective_dfs(np.array([alpha]))[0])

    def residual_square(self, alpha: float) -> Float:
        """Residual sum of squares of each target, (d,)."""
        found: Float = self._residual_squares(np.array([alpha]))[0]
        return found

    def gcv(self, alpha: float, scale: Float | None = None, inflation: float = 1.0) -> float:
        """Generalised cross-validation score per row, summed over targets, each divided by its `scale` (d,).

        `inflation` is the factor c of the effective degrees of freedom.
        """
        return float(self.gcv_scores(np.array([alpha]), scale, inflation)[0])

    def gcv_scores(self, alphas: Float, scale: Float | None = None, inflation: float = 1.0) -> Float:
        """The score `gcv` of each of some alphas, (k,)."""
        free = self.count - inflation * self.effective_dfs(alphas)
        residual = self._residual_squares(alphas)
        total = residual.sum(axis=1) if scale is None else (residual / scale).sum(axis=1)
        scores = np.full_like(free, np.inf)
        np.divide(self.count * (self.share * total), free**2, out=scores, where=free > 0.0)
        return scores

    # Of all alphas at once: a fit looks at a grid of them for each round of its selection, and keeps one.
    def effective_dfs(self, alphas: Float) -> Float:
        """Trace of the hat matrix for each of some alphas, (k,)."""
        shrunk = self.values + alphas[:, None]
        share = np.divide(self.values, shrunk, out=np.zeros_like(shrunk), where=shrunk > 0.0)
        found: Float = share.sum(axis=1) + self.intercept_df
        return found

    def _residual_squares(self, alphas: Float) -> Float:
        explained, squares, _ = self.form.solve(self.turned, alphas)
        return np.maximum(self.square - explained - alphas[:, None] * squares, 0.0)

    def grid(self, points: int = 61) -> Float:
        """Alphas equally spaced in logarithm, from the smallest one above rounding to complete shrinkage."""
        top = float(self.values[-1]) if len(self.values) and self.values[-1] > 0.0 else 1.0
        # The bound of n eps is taken ten times: the scores of the smallest alphas are differences of large numbers.
        low = max(10.0 * len(self.values) * float(np.finfo(np.float64).eps) * top, self.smallest_alpha, 1e-12 * top)
        # If all eigenvalues are rounding, `low` is above all of them.
        return np.geomspace(low, 10.0 * max(low, top), points)

    def negative_log_evidence(self, alpha: float) -> float:
        """``-2 log p(Y)`` up to a constant, for a Gaussian process prior and the best noise variance."""
        return float(self._negative_log_evidences(np.array([alpha]))[0])

    def _negative_log_evidences(self, alphas: Float) -> Float:
        explained = self.form.solve(self.turned, alphas)[0]
        # Constant targets carry no information.
        left = np.maximum(self.square - explained, 1e-300 + 1e-14 * self.square)[:, self.square > 0.0]
        penalty = left.shape[1] * np.log1p(self.values / alphas[:, None]).sum(axis=1)
        found: Float = self.count * np.log(left / self.count).sum(axis=1) + penalty
        return found

    def choose(self, scale: Float | None = None) -> float:
        """Alpha with the smallest GCV score (c = 1.4), or with the largest evidence, whichever alpha is larger.

        If the two alphas differ much, either the GCV score is flat between them, or a few rows of large leverage have
        distorted it. The larger alpha costs nothing in the first case and prevents a bad fit in the second.
        """
        by_gcv = self._least(lambda alphas: self.gcv_scores(alphas, scale, _INFLATION))
        return max(by_gcv, self._least(self._negative_log_evidences))

    def _least(self, score: Callable[[Float], Float]) -> float:
        """Alpha with the smallest score: the best of the grid, and then of finer ones between its neighbours."""
        alphas = self.grid()
        found = float(alphas[-1])
        for _ in range(1 + _LOOKS):
            scores = score(alphas)
            best = int(np.argmin(scores))
            if not np.isfinite(scores[best]):
                break
            found = float(alphas[best])
            alphas = np.geomspace(alphas[max(best - 1, 0)], alphas[min(best + 1, len(alphas) - 1)], _ALPHAS)
        return found
