"""The bound of kernel PCA from its eigenvalues: a reference for the compression bound.

It bounds the residual of a new row outside the span of the r leading eigenvectors. With probability 1 - delta over m
independent rows, simultaneously for all r (Shawe-Taylor, Williams, Cristianini & Kandola 2005, quoted)::

    E l_r <= min_(t <= r) { sum_(j > t) lambda_j / m + (1 + sqrt t) / sqrt m sqrt( (2 / m) sum_i k(x_i, x_i)^2 ) }
             + R^2 sqrt( (18 / m) ln(2 m / delta) ),         k(x, x) <= R^2

It uses the Rademacher complexity of projections and counts no subsets: the cost of a direction is independent of m / t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.bounds._checks import checked_path
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_number, checked_probability
from streamkernel.type_aliases import Float


def pca_bound(eigenvalues: ArrayLike, diagonal: ArrayLike, delta: float = 0.05, largest: float = 1.0) -> Float:
    """Bound the expected residual of a new row for 1 .. r leading eigenvectors, without the minimum over t.

    Parameters
    ----------
    eigenvalues : (r,) eigenvalues of the kernel matrix, not centred, largest first.
    diagonal : (m,) k(x_i, x_i); its sum is the trace.
    delta : probability that the bound fails, in (0, 1).
    largest : sup k(x, x), the R^2 of the formula; 1 for a Gaussian.

    Returns
    -------
    (r,) values; their running minimum holds for r directions.

    Raises
    ------
    ParameterError
        The eigenvalues rise, or their sum exceeds the trace.
    """
    values, squares = checked_path("eigenvalues", eigenvalues), checked_path("diagonal", diagonal)
    delta, largest = checked_probability("delta", delta), checked_number("largest", largest)
    m, trace = len(squares), float(squares.sum())
    left = trace - np.cumsum(values)
    if np.any(np.diff(values) > 1e-9 * values[0]) or left[-1] < -1e-6 * trace:
        raise ParameterError("eigenvalues rise, or exceed the trace; give those of the kernel matrix, largest first")
    t = np.arange(1, len(values) + 1)
    complexity = (1.0 + np.sqrt(t)) / np.sqrt(m) * np.sqrt(2.0 / m * float(squares @ squares))
    surprise = largest * np.sqrt(18.0 / m * np.log(2.0 * m / delta))
    bound: Float = np.maximum(left, 0.0) / m + complexity + surprise
    return bound
