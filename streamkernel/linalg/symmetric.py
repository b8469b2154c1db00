"""Symmetric matrices of which only the upper triangle was accumulated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["mirror_upper"]


def mirror_upper(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Copy the upper triangle onto the lower one, in place, and return the matrix."""
    for i in range(1, len(matrix)):
        matrix[i, :i] = matrix[:i, i]
    return matrix
