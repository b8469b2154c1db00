"""Kernels of mapped rows: ``k(x, z) = inner(phi(x), phi(z))``, for a map phi of rows that is quick to compute.

The compiled loops fill the blocks of `inner`. The map is computed for some rows at a time, so that it needs little
memory and stays in a cache.
"""

from __future__ import annotations

from abc import abstractmethod

from streamkernel.kernels.base import CHUNK_ROWS, Kernel, PreparedKernel
from streamkernel.kernels.parameters import checked_rows
from streamkernel.type_aliases import AnyArray, Float, Unchecked

# Bytes of mapped rows at a time: few rows of few numbers would cost more to call the loops for than to fill.
_MAPPED_BYTES = 1 << 16


class MappedKernel(Kernel):
    """A kernel of rows that are mapped first."""

    @property
    @abstractmethod
    def inner(self) -> Kernel:
        """The kernel of mapped rows."""

    @abstractmethod
    def mapped(self, X: AnyArray) -> AnyArray:
        """``phi(x)`` of each row of X (b, p), (b, q) C-contiguous in the dtype of X."""

    @abstractmethod
    def pulled_back(self, X: Float, gradients: Float) -> Float:
        """Gradients by x of functions of ``phi(x)``, (b, d, p), from those by ``phi(x)``, (b, d, q)."""

    def prepare(self, Z: Unchecked) -> PreparedKernel:
        points = checked_rows(Z, "Z")
        self.check_features(points.shape[1])
        return PreparedMapped(self, points)


class PreparedMapped(PreparedKernel):
    """A kernel of mapped rows, with its points mapped once."""

    def __init__(self, kernel: MappedKernel, points: AnyArray) -> None:
        super().__init__(kernel, points)
        self.mapped = kernel.mapped
        self.inner = kernel.inner.prepare(kernel.mapped(points))

    def fill(self, X: AnyArray, out: AnyArray) -> None:
        chunk = max(CHUNK_ROWS, _MAPPED_BYTES // (8 * max(1, self.inner.points.shape[1])))
        for start in range(0, len(X), chunk):
            rows = slice(start, start + chunk)
            self.inner.fill(self.mapped(X[rows]), out[rows])
