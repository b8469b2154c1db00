"""Base classes of kernels. A kernel is a formula with its parameters: frozen, hashable, and prepared for blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.kernels.parameters import Lengthscale, checked_lengthscale, checked_rows

if TYPE_CHECKING:
    from streamkernel.kernels.prepared import PreparedKernel

__all__ = ["Formula", "Kernel", "KernelConfig", "Metric", "StationaryKernel", "Transform", "kernel_path"]


class Metric(IntEnum):
    """Sum over the features, with weights w_j."""

    SQUARED = 0  # s = sum_j w_j^2 (x_j - z_j)^2
    ABSOLUTE = 1  # s = sum_j w_j |x_j - z_j|
    INNER = 2  # s = sum_j x_j z_j


class Transform(IntEnum):
    """Function of the sum s: first ``t = factor s + offset``, then one of these."""

    POWER = 1  # t^shape, shape a whole number
    EXP = 2  # exp(-t)
    MATERN12 = 3  # exp(-sqrt t)
    MATERN32 = 4  # (1 + r) exp(-r), r = sqrt t
    MATERN52 = 5  # (1 + r + r^2 / 3) exp(-r), r = sqrt t
    RATIONAL = 6  # (1 + t)^-shape


@dataclass(frozen=True, slots=True)
class Formula:
    """Formula of a kernel for the loops: ``k(x, z) = transform(factor * metric(x, z) + offset)``.

    `weights` (p,) float64 are the w_j of the metric; ones for an inner product.
    """

    metric: Metric
    transform: Transform
    weights: NDArray[np.float64]
    factor: float = 1.0
    offset: float = 0.0
    shape: float = 1.0


class KernelConfig(dict[str, Any]):
    """Configuration of a kernel, with its class if this is known; otherwise the class is found by its name."""

    kind: type[Kernel] | None = None


def kernel_path(kind: type[Kernel]) -> str:
    """Name of a kernel class in a configuration: its `name` for classes of this package, else ``module:Class``."""
    if kind.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return kind.name
    return f"{kind.__module__}:{kind.__qualname__}"


class Kernel(ABC):
    """A function of two rows, positive semi-definite unless `positive_definite` is False.

    Kernels are frozen dataclasses: equal parameters, equal kernels. ``k1 + k2`` and ``k1 * k2`` are kernels too.
    """

    name: ClassVar[str]
    stationary: ClassVar[bool] = False

    @property
    def positive_definite(self) -> bool:
        """True if no kernel matrix has an eigenvalue below 0. Whitening, and all methods that use it, require this."""
        return True

    @property
    def formulas(self) -> int:
        """Number of formulas of the kernel; each packs its own copy of the basis points."""
        return 1

    @abstractmethod
    def prepare(self, Z: Any) -> PreparedKernel:
        """This kernel with basis points Z (n, p), packed once for many blocks ``k(X_b, Z)``."""

    @abstractmethod
    def diagonal(self, X: Any) -> NDArray[np.float64]:
        """``k(x_i, x_i)`` of each row, (b,) float64."""

    @abstractmethod
    def with_lengthscale(self, lengthscale: Any) -> Kernel:
        """The same kernel with another lengthscale; a kernel without a lengthscale is returned as it is."""

    @abstractmethod
    def check_features(self, n_features: int) -> None:
        """Check that the kernel can take rows of `n_features` features.

        Raises
        ------
        ShapeError, ParameterError
            It cannot.
        """

    def to_config(self) -> dict[str, Any]:
        """The kernel as plain JSON: its name (`kernel_path`) and its parameters."""
        config = KernelConfig({"kernel": kernel_path(type(self))})
        config.kind = type(self)
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            config[field.name] = list(value) if isinstance(value, tuple) else value
        return config

    def __call__(self, X: Any, Z: Any = None) -> NDArray[Any]:
        """Kernel matrix ``K_ij = k(x_i, z_j)``, (m, n), in the wider of the two dtypes; Z is X by default."""
        rows = checked_rows(X)
        points = rows if Z is None else checked_rows(Z, "Z", rows.shape[1])
        dtype = np.result_type(rows, points)
        return self.prepare(points.astype(dtype, copy=False)).block(rows.astype(dtype, copy=False))

    def __add__(self, other: object) -> Kernel:
        from streamkernel.kernels.composite import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: object) -> Kernel:
        from streamkernel.kernels.composite import Product

        return Product(self, other) if isinstance(other, Kernel) else NotImplemented


class FormulaKernel(Kernel):
    """A kernel of one formula; the compiled loops fill its blocks."""

    @abstractmethod
    def formula(self, n_features: int) -> Formula:
        """The formula for rows of `n_features` features."""

    def check_features(self, n_features: int) -> None:
        """Accepts any number of features."""

    def prepare(self, Z: Any) -> PreparedKernel:
        from streamkernel.kernels.prepared import PreparedFormula

        points = checked_rows(Z, "Z")
        self.check_features(points.shape[1])
        return PreparedFormula(self, points)

    def with_lengthscale(self, lengthscale: Any) -> Kernel:
        checked_lengthscale(lengthscale)
        return self


@dataclass(frozen=True)
class StationaryKernel(FormulaKernel):
    """A kernel of the scaled distance between two rows: ``k(x, x) = 1``."""

    lengthscale: Lengthscale = 1.0

    stationary: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", checked_lengthscale(self.lengthscale))

    def check_features(self, n_features: int) -> None:
        if isinstance(self.lengthscale, tuple) and len(self.lengthscale) != n_features:
            raise ParameterError(
                f"lengthscale has {len(self.lengthscale)} entries for {n_features} features;"
                " give one number, or one per feature"
            )

    def weights(self, n_features: int) -> NDArray[np.float64]:
        """``1 / lengthscale`` of each feature, (p,)."""
        lengths = np.asarray(self.lengthscale, dtype=np.float64)
        return np.ascontiguousarray(np.broadcast_to(1.0 / lengths, (n_features,)))

    def with_lengthscale(self, lengthscale: Any) -> Self:
        parameters = {f.name: getattr(self, f.name) for f in fields(self)}
        return type(self)(**{**parameters, "lengthscale": lengthscale})

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        rows = np.asarray(X)
        if rows.ndim != 2:
            raise ShapeError(f"X has {rows.ndim} dimensions; give a table of rows of shape (rows, features)")
        self.check_features(rows.shape[1])
        return np.ones(len(rows))
