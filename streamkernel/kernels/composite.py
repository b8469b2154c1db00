"""Sums and products of kernels."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import ParameterError
from streamkernel.kernels.base import Kernel
from streamkernel.kernels.parameters import checked_rows
from streamkernel.kernels.prepared import PreparedKernel

__all__ = ["Product", "Sum"]

# Rows of the right operand's block per step: with n = 1000 they stay in the second-level cache.
CHUNK_ROWS = 128


@dataclass(frozen=True)
class Composite(Kernel):
    """Two kernels, and an operation that combines their values."""

    left: Kernel
    right: Kernel

    operation: ClassVar[np.ufunc]

    def __post_init__(self) -> None:
        for side, kernel in (("left", self.left), ("right", self.right)):
            if not isinstance(kernel, Kernel):
                raise ParameterError(f"{side} = {kernel!r} is no kernel; give a streamkernel kernel")

    @property
    @abstractmethod
    def stationary(self) -> bool:  # type: ignore[override]
        """True if ``k(x, x) = 1`` for every row."""

    @property
    def formulas(self) -> int:
        return self.left.formulas + self.right.formulas

    @property
    def positive_definite(self) -> bool:
        return self.left.positive_definite and self.right.positive_definite

    def check_features(self, n_features: int) -> None:
        self.left.check_features(n_features)
        self.right.check_features(n_features)

    def prepare(self, Z: Any) -> PreparedKernel:
        points = checked_rows(Z, "Z")
        self.check_features(points.shape[1])
        return PreparedComposite(self, points)

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        result: NDArray[np.float64] = self.operation(self.left.diagonal(X), self.right.diagonal(X))
        return result

    def with_lengthscale(self, lengthscale: Any) -> Self:
        return type(self)(self.left.with_lengthscale(lengthscale), self.right.with_lengthscale(lengthscale))

    def to_config(self) -> dict[str, Any]:
        return {"kernel": self.name, "left": self.left.to_config(), "right": self.right.to_config()}


@dataclass(frozen=True)
class Sum(Composite):
    """``k(x, z) = left(x, z) + right(x, z)``."""

    name: ClassVar[str] = "sum"
    operation: ClassVar[np.ufunc] = np.add

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return False


@dataclass(frozen=True)
class Product(Composite):
    """``k(x, z) = left(x, z) right(x, z)``."""

    name: ClassVar[str] = "product"
    operation: ClassVar[np.ufunc] = np.multiply

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return self.left.stationary and self.right.stationary


class PreparedComposite(PreparedKernel):
    """Two kernels prepared for the same points."""

    def __init__(self, kernel: Composite, points: NDArray[Any]) -> None:
        super().__init__(kernel, points)
        self.operation = kernel.operation
        self.left = kernel.left.prepare(points)
        self.right = kernel.right.prepare(points)

    def fill(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        scratch = np.empty((min(CHUNK_ROWS, len(X)), out.shape[1]), out.dtype)
        for start in range(0, len(X), CHUNK_ROWS):
            rows, part = X[start : start + CHUNK_ROWS], out[start : start + CHUNK_ROWS]
            self.left.fill(rows, part)
            self.right.fill(rows, scratch[: len(rows)])
            self.operation(part, scratch[: len(rows)], out=part)
