"""Symmetric matrices from their accumulated upper triangles."""

from __future__ import annotations

import numpy as np

from streamkernel.type_aliases import Float

_PANEL = 256  # columns that are copied together: one at a time would miss the cache at every row


def mirror_upper(matrix: Float) -> Float:
    """Copy the upper triangle onto the lower one, in place, and return the matrix."""
    n = len(matrix)
    for start in range(0, n, _PANEL):
        stop = min(start + _PANEL, n)
        matrix[start:stop, :start] = matrix[:start, start:stop].T
        corner = matrix[start:stop, start:stop]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T
    return matrix
