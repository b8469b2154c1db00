"""Rows of a kernel matrix, computed on demand; those that were used longest ago make room for others."""

from __future__ import annotations

import numpy as np

from streamkernel.kernels import Kernel
from streamkernel.type_aliases import Float, Int

_LEAST = 2
_AT_ONCE = 64


class KernelRows:
    """Rows ``k(x_i, X)`` (m,) in float64, at most as many as fit into a number of bytes.

    Attributes
    ----------
    values : (s, m) the rows in memory.
    slots : (m,) position of each row in `values`, -1 for a row that is not there.
    diagonal : (m,) ``k(x_i, x_i)``.
    """

    def __init__(self, kernel: Kernel, X: Float, most_bytes: int) -> None:
        m = len(X)
        self.X, self.prepared = X, kernel.prepare(X)
        self.values: Float = np.empty((min(m, max(_LEAST, most_bytes // (8 * m))), m))
        self.slots: Int = np.full(m, -1, dtype=np.int64)
        self._used: Int = np.zeros(len(self.values), dtype=np.int64)
        self._clock = 0
        self.diagonal: Float = np.ascontiguousarray(kernel.diagonal(X), dtype=np.float64)
        self._owners: Int = np.full(len(self.values), -1, dtype=np.int64)

    @property
    def holds_all(self) -> bool:
        """Whether all rows fit into memory."""
        return len(self.values) == len(self.X)

    @property
    def most_at_once(self) -> int:
        """Rows that one call may ask for: `get` returns a copy of them, which is to be small."""
        return min(_AT_ONCE, len(self.values) // _LEAST)

    def fetch(self, rows: Int) -> None:
        """Compute rows that are not in memory, in the places of those used longest ago; the lowest place in a tie."""
        self._clock += 1
        places = np.argsort(self._used, kind="stable")[: len(rows)]
        former = self._owners[places]
        self.slots[former[former >= 0]] = -1
        self.values[places] = self.prepared.block(self.X[rows])
        self.slots[rows], self._owners[places], self._used[places] = places, rows, self._clock

    def get(self, rows: Int) -> Float:
        """The kernel rows (r, m) of up to `most_at_once` rows."""
        self._clock += 1
        present = self.slots[rows] >= 0
        self._used[self.slots[rows[present]]] = self._clock
        if not present.all():
            self.fetch(rows[~present])
        return np.asarray(self.values[self.slots[rows]])

    def products(self, coefficients: Float, panel: int = 256) -> Float:
        """``K c`` (m,), computed anew from the rows with c != 0."""
        some = np.flatnonzero(coefficients)
        f = np.zeros(len(self.X))
        if len(some):
            prepared = self.prepared.kernel.prepare(self.X[some])
            for start in range(0, len(self.X), panel):
                f[start : start + panel] = prepared.block(self.X[start : start + panel]) @ coefficients[some]
        return f
