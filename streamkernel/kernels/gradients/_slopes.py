"""Slopes of kernels, a few rows at a time: what the gradients by lengthscales and by rows have in common."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.kernels.base import Kernel, kernel_path
from streamkernel.kernels.formulas.formula_kernels import FormulaKernel, StationaryKernel
from streamkernel.kernels.formulas.hamming import Hamming
from streamkernel.kernels.loops.prepared import PreparedFormula
from streamkernel.type_aliases import Float

# Rows per step: their slopes stay in the second-level cache. With n = 400 points and 8 to 32 features, 256 were the
# fastest of 64, 128, 256 and 512 for the gradient of one function or within 5 %. For ten functions all were alike.
CHUNK_ROWS = 256


def chunks(rows: int) -> Iterator[slice]:
    """Slices of at most `CHUNK_ROWS` rows."""
    return (slice(start, min(start + CHUNK_ROWS, rows)) for start in range(0, rows, CHUNK_ROWS))


def formula_kernel(kernel: Kernel, by: str) -> FormulaKernel:
    """The kernel, if it has one of the formulas of this package.

    Raises
    ------
    ParameterError
        It has not, so that its slope is not known; the message names what the slope is `by`.
    """
    # A user's class may have another formula than the class that it derives from, and so another slope.
    if ":" in kernel_path(type(kernel)) or not isinstance(kernel, FormulaKernel):
        raise ParameterError(f"the slope of {kernel!r} by {by} is not known; give a streamkernel kernel")
    return kernel


class Slopes:
    """``-2 dk/ds`` of a kernel of the distance s, up to a constant factor.

    It is ``-dk/ds`` where s is a sum of absolute differences, or of columns that differ.

    Parameters
    ----------
    kernel : StationaryKernel or Hamming
    points : (n, p) float64, packed once for many blocks of rows.

    Attributes
    ----------
    constant : the factor of the values that `fill` computes.
    weights : (p,) ``1 / lengthscale`` of each feature.
    centre : (p,) mean of the points. Products of centred rows lose no digits to an offset.
    """

    def __init__(self, kernel: StationaryKernel | Hamming, points: Float) -> None:
        p = points.shape[1]
        formula = kernel.formula(p)
        slope, self.constant = kernel.slope(formula)
        self.weights = formula.weights
        self.centre = points.mean(axis=0) if len(points) else np.zeros(p)
        self._prepared = PreparedFormula(kernel, slope, points)

    def fill(self, X: Float, out: Float) -> None:
        """Overwrite `out` (b, n) by the slopes of rows X (b, p) and the points, without their constant."""
        if out.size:
            self._prepared.fill(X, out)
