"""A ridge regression on a sample of rows, for one alpha after another, judged by rows that it has not seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from streamkernel.basis import Basis
from streamkernel.errors import NumericalError
from streamkernel.linalg import require_finite, single_threaded_blas, solve_shifted
from streamkernel.reductions.sums import RidgeSums
from streamkernel.solvers.least_squares.ridge import least_squares
from streamkernel.solvers.least_squares.validation import search
from streamkernel.type_aliases import Float

_LEAST_ALPHA, _START_ALPHA, _MOST_ALPHA = 1e-12, 1e-4, 1.0  # of the trace of the sums
# Gradients are those of the least regularised regression with at most this times the smallest error: where little is
# explained, that of the smallest error is a straight line, and shows none of the columns that act together.
_ROUGHER = 1.1
_STEP_DOWN = 0.1  # factor of alpha on the way there, at the end its root


class Solution(NamedTuple):
    """A ridge regression: alpha, coefficients (n, d), predictions (h, d) of the held-out rows, and their error."""

    alpha: float
    coefficients: Float
    values: Float
    error: float


class Regression:
    """The normal equations of a sample, and the alpha of least error on its held-out rows.

    Held-out rows are predicted for each alpha: that takes ``2 h n d`` operations, where sums over them take ``h n^2``.

    Parameters
    ----------
    basis : Basis of n functions.
    sums : RidgeSums of the rows that are trained on.
    block : function that computes the kernel values (h, n) of the held-out rows. They are computed again when they are
        needed again: a search holds several regressions.
    error : function of their predictions (h, d).
    intercept : True to fit a constant.
    """

    def __init__(
        self,
        basis: Basis,
        sums: RidgeSums,
        block: Callable[[], Float],
        error: Callable[[Float], float],
        *,
        intercept: bool,
    ) -> None:
        self.basis, self._block, self._error, self._intercept = basis, block, error, intercept
        for name in ("H", "g"):
            require_finite(getattr(sums, name), f"the sum {name}")
        self._H, self._g, _ = least_squares(sums, intercept)
        self._trace = max(float(np.trace(sums.H)), np.finfo(np.float64).tiny)
        self._mean = sums.centre + sums.Y1 / sums.weight
        self._feature_mean = sums.G1 / sums.weight
        self._least = _LEAST_ALPHA * self._trace

    def best(self, start: float | None = None) -> Solution:
        """The solution with the smallest error; the search for its alpha begins at `start`."""
        start = _START_ALPHA * self._trace if start is None else start
        block = self._block()
        best: Solution | None = None

        def error(alpha: float) -> float:
            nonlocal best
            solution = self._solve(alpha, block)
            if solution is None:
                return math.inf
            # Predictions of all alphas would take more memory than the sums: those of the best are enough. Of equal
            # errors the largest alpha wins.
            if best is None or (solution.error, -alpha) < (best.error, -best.alpha):
                best = solution
            return solution.error

        search(error, start, self._least, _MOST_ALPHA * self._trace)
        if best is None:
            raise NumericalError(
                "no regression of the search for a kernel has a finite error on held-out rows; look for targets or row "
                "weights beyond 1e150"
            )
        return best

    def roughest(self, alpha: float) -> Float:
        """Coefficients (n, d) of the least regularised solution with at most `_ROUGHER` times the error at `alpha`."""
        block = self._block()
        rough = self._solve(alpha, block)
        assert rough is not None, f"alpha {alpha:g} was solved for when it was chosen"
        most, step = _ROUGHER * rough.error, _STEP_DOWN
        while rough.alpha * step >= self._least:
            lower = self._solve(rough.alpha * step, block)
            if lower is not None and lower.error <= most:
                rough = lower
            elif step > _STEP_DOWN:
                break
            else:
                step = math.sqrt(_STEP_DOWN)
        return rough.coefficients

    def _solve(self, alpha: float, block: Float) -> Solution | None:
        """The solution for one alpha; None if alpha is lost in rounding."""
        with single_threaded_blas():
            beta = solve_shifted(self._H, alpha, self._g)
            if beta is None:
                return None
            coefficients = self.basis.coefficients(beta)
            values: Float = block @ coefficients
            if self._intercept:
                values += self._mean - self._feature_mean @ beta
        error = self._error(values)
        return Solution(alpha, coefficients, values, error) if math.isfinite(error) else None
