"""Kernels of mapped rows: ``k(x, z) = inner(phi(x), phi(z))``, for a map phi of rows that is quick to compute.

The compiled loops fill the blocks of `inner`. The map is computed for a few rows at a time, so that it needs little
memory.
"""

from __future__ import annotations

from abc import abstractmethod

from streamkernel.kernels.base import CHUNK_ROWS, Kernel, PreparedKernel
from streamkernel.kernels.parameters import checked_rows
from streamkernel.type_aliases import AnyArray, Float, Unchecked


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
        for start in range(0, len(X), CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            self.inner.fill(self.mapped(X[rows]), out[rows])
