"""Kernels and prepared kernels, and the sums, products and multiples of both.

A kernel is a formula with its parameters: frozen, hashable, and prepared for blocks. Sums, products and multiples stand
in this file because every kernel has the operators ``+`` and ``*`` that make them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.kernels.parameters import checked_number, checked_rows
from streamkernel.type_aliases import AnyArray, Fields, Float, Int, Unchecked

# Rows of the right operand's block per step: with n = 1000 they stay in the second-level cache.
CHUNK_ROWS = 128


class KernelConfig(dict[str, Any]):
    """Configuration of a kernel, with its class, or the function that it is, if this is known; otherwise the class is
    found by its name.
    """

    kind: type[Kernel] | None = None
    function: Callable[..., Any] | None = None


def kernel_path(kind: type[Kernel]) -> str:
    """Name of a kernel class in a configuration: its `name` for classes of this package, else ``module:Class``."""
    if kind.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return kind.name
    return f"{kind.__module__}:{kind.__qualname__}"


class Kernel(ABC):
    """A function of two rows, positive semi-definite unless `positive_definite` is False.

    Kernels are frozen dataclasses: equal parameters, equal kernels. ``k1 + k2``, ``k1 * k2`` and ``2.0 * k1`` are
    kernels too.

    Attributes
    ----------
    stationary : whether ``k(x, x) = 1`` for every row.
    has_units : whether a parameter beside the lengthscale is in the units of the features, which then must stay.
    """

    name: ClassVar[str]
    stationary: ClassVar[bool] = False
    has_units: ClassVar[bool] = False

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that it is made of, from left to right; none of a kernel with a formula of its own."""
        return ()

    def seen(self, columns: Int) -> Int:
        """Those of the features that its parts see: all of them."""
        return columns

    @property
    def positive_definite(self) -> bool:
        """True if no kernel matrix has an eigenvalue below 0. Whitening, and all methods that use it, require this."""
        return True

    @property
    def formulas(self) -> int:
        """Number of formulas of the kernel; each packs its own copy of the basis points."""
        return 1

    @property
    def of_pairs(self) -> bool:
        """Whether its rows are sparse ones in pairs of columns and values (`streamkernel.pairs`)."""
        return False

    @abstractmethod
    def prepare(self, Z: Unchecked) -> PreparedKernel:
        """This kernel with basis points Z (n, p), packed once for many blocks ``k(X_b, Z)``."""

    @abstractmethod
    def diagonal(self, X: Unchecked) -> Float:
        """``k(x_i, x_i)`` of each row, (b,) float64."""

    @abstractmethod
    def with_lengthscale(self, lengthscale: Unchecked) -> Kernel:
        """The same kernel with another lengthscale; a kernel without a lengthscale is returned as it is."""

    @abstractmethod
    def check_features(self, n_features: int) -> None:
        """Check that the kernel can take rows of `n_features` features.

        Raises
        ------
        ShapeError, ParameterError
            It cannot.
        """

    def check_values(self, X: AnyArray) -> None:
        """Try a user's function, or those among the parts, on a few rows (b, p), before any work.

        Raises
        ------
        ShapeError, NonFiniteDataError, ParameterError
            Its values are no kernel's.
        """
        for part in self.parts:
            part.check_values(X)

    def to_config(self) -> Fields:
        """The kernel as plain JSON: its name (`kernel_path`) and its parameters."""
        config = KernelConfig({"kernel": kernel_path(type(self))})
        config.kind = type(self)
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            config[field.name] = list(value) if isinstance(value, tuple) else value
        return config

    def __call__(self, X: Unchecked, Z: Unchecked = None) -> AnyArray:
        """Kernel matrix ``K_ij = k(x_i, z_j)``, (m, n), in the wider of the two dtypes; Z is X by default."""
        rows = checked_rows(X)
        points = rows if Z is None else checked_rows(Z, "Z", rows.shape[1])
        dtype = np.result_type(rows, points)
        return self.prepare(points.astype(dtype, copy=False)).block(rows.astype(dtype, copy=False))

    def __add__(self, other: object) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: object) -> Kernel:
        if isinstance(other, Real):
            return Scaled(self, other)  # type: ignore[arg-type]  # it becomes a float there
        return Product(self, other) if isinstance(other, Kernel) else NotImplemented

    def __rmul__(self, other: object) -> Kernel:
        return self * other if isinstance(other, Real) else NotImplemented


class PreparedKernel(ABC):
    """``k(., Z)`` for fixed Z (n, p). Threads may share one object. Only the kernel and Z are pickled."""

    def __init__(self, kernel: Kernel, points: AnyArray) -> None:
        self.kernel = kernel
        self.points = points

    def __reduce__(self) -> tuple[Any, ...]:
        return prepare, (self.kernel, self.points)

    def block(self, X: AnyArray, out: AnyArray | None = None) -> AnyArray:
        """``K_bn = k(X_b, Z)``, (b, n) in the dtype of X (float32 or float64).

        Parameters
        ----------
        X : (b, p) rows.
        out : (b, n), optional
            Array with the dtype of X, which is filled and returned. Its rows are contiguous, and may stand apart: it
            may be the first columns of a wider array.
        """
        # Rows in pairs have as many numbers as the entries of the fullest row of their own table.
        rows = checked_rows(X, "X", None if self.kernel.of_pairs else self.points.shape[1])
        shape = (len(rows), len(self.points))
        if out is None:
            out = np.empty(shape, rows.dtype)
        elif out.shape != shape or out.dtype != rows.dtype or not _has_contiguous_rows(out):
            raise ShapeError(
                f"out is {out.shape} {out.dtype}; give a {shape} {rows.dtype} array whose rows are contiguous"
            )
        if out.size:
            self.fill(rows, out)
        return out

    @abstractmethod
    def fill(self, X: AnyArray, out: AnyArray) -> None:
        """`block` without checks."""


def _has_contiguous_rows(out: AnyArray) -> bool:
    apart, between = out.strides
    row = out.shape[1] * out.itemsize
    return out.flags.c_contiguous or (
        (between == out.itemsize or out.shape[1] == 1) and apart >= row and apart % out.itemsize == 0
    )


def with_gaps(out: AnyArray) -> AnyArray:
    """An array (b, n) with contiguous rows, and the numbers between its rows: a C-contiguous array (b, >= n).

    Compiled loops have one version, for C-contiguous arrays. They write the first n columns; what follows the last row
    need not be memory of the array.
    """
    if out.flags.c_contiguous:
        return out
    return np.lib.stride_tricks.as_strided(out, (len(out), out.strides[0] // out.itemsize))


def prepare(kernel: Kernel, points: AnyArray) -> PreparedKernel:
    return kernel.prepare(points)


class Composite(Kernel):
    """A kernel that is made of others.

    Attributes
    ----------
    PARTS : names of its fields that are kernels.
    """

    PARTS: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        for name, kernel in zip(self.PARTS, self.parts, strict=True):
            if not isinstance(kernel, Kernel):
                raise ParameterError(f"{name} = {kernel!r} is no kernel; give a streamkernel kernel")

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return tuple(getattr(self, name) for name in self.PARTS)

    def with_parts(self, parts: Sequence[Kernel]) -> Self:
        """The same, made of other kernels."""
        made: Self = replace(self, **dict(zip(self.PARTS, parts, strict=True)))  # type: ignore[type-var]
        return made

    @property
    def formulas(self) -> int:
        return sum(part.formulas for part in self.parts)

    @property
    def of_pairs(self) -> bool:
        return any(part.of_pairs for part in self.parts)

    @property
    def has_units(self) -> bool:  # type: ignore[override]
        return any(part.has_units for part in self.parts)

    @property
    def positive_definite(self) -> bool:
        return all(part.positive_definite for part in self.parts)

    def check_features(self, n_features: int) -> None:
        for part in self.parts:
            part.check_features(n_features)

    def with_lengthscale(self, lengthscale: Unchecked) -> Self:
        return self.with_parts([part.with_lengthscale(lengthscale) for part in self.parts])

    def to_config(self) -> Fields:
        return super().to_config() | {name: getattr(self, name).to_config() for name in self.PARTS}


@dataclass(frozen=True)
class Pair(Composite):
    """Two kernels, and an operation that combines their values."""

    left: Kernel
    right: Kernel

    PARTS: ClassVar[tuple[str, ...]] = ("left", "right")
    operation: ClassVar[np.ufunc]

    @property
    @abstractmethod
    def stationary(self) -> bool:  # type: ignore[override]
        """True if ``k(x, x) = 1`` for every row."""

    def prepare(self, Z: Unchecked) -> PreparedKernel:
        points = checked_rows(Z, "Z")
        self.check_features(points.shape[1])
        return PreparedPair(self, points)

    def diagonal(self, X: Unchecked) -> Float:
        result: Float = self.operation(self.left.diagonal(X), self.right.diagonal(X))
        return result


@dataclass(frozen=True)
class Sum(Pair):
    """``k(x, z) = left(x, z) + right(x, z)``."""

    name: ClassVar[str] = "sum"
    operation: ClassVar[np.ufunc] = np.add

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return False


@dataclass(frozen=True)
class Product(Pair):
    """``k(x, z) = left(x, z) right(x, z)``."""

    name: ClassVar[str] = "product"
    operation: ClassVar[np.ufunc] = np.multiply

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return self.left.stationary and self.right.stationary


class PreparedPair(PreparedKernel):
    """Two kernels prepared for the same points."""

    def __init__(self, kernel: Pair, points: AnyArray) -> None:
        super().__init__(kernel, points)
        self.operation = kernel.operation
        self.left = kernel.left.prepare(points)
        self.right = kernel.right.prepare(points)

    def fill(self, X: AnyArray, out: AnyArray) -> None:
        scratch = np.empty((min(CHUNK_ROWS, len(X)), out.shape[1]), out.dtype)
        for start in range(0, len(X), CHUNK_ROWS):
            rows, part = X[start : start + CHUNK_ROWS], out[start : start + CHUNK_ROWS]
            self.left.fill(rows, part)
            self.right.fill(rows, scratch[: len(rows)])
            self.operation(part, scratch[: len(rows)], out=part)


@dataclass(frozen=True)
class Scaled(Composite):
    """``k(x, z) = factor part(x, z)``.

    Parameters
    ----------
    part : Kernel
    factor : float > 0
    """

    part: Kernel
    factor: float

    name: ClassVar[str] = "scaled"
    PARTS: ClassVar[tuple[str, ...]] = ("part",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "factor", checked_number("factor", self.factor))

    def prepare(self, Z: Unchecked) -> PreparedKernel:
        return PreparedScaled(self, checked_rows(Z, "Z"))

    def diagonal(self, X: Unchecked) -> Float:
        return self.factor * self.part.diagonal(X)


class PreparedScaled(PreparedKernel):
    """A multiple of a kernel with its points."""

    def __init__(self, kernel: Scaled, points: AnyArray) -> None:
        super().__init__(kernel, points)
        self.factor = kernel.factor
        self.part = kernel.part.prepare(points)

    def fill(self, X: AnyArray, out: AnyArray) -> None:
        for start in range(0, len(X), CHUNK_ROWS):  # the values are multiplied while they are in a cache
            part = out[start : start + CHUNK_ROWS]
            self.part.fill(X[start : start + CHUNK_ROWS], part)
            part *= part.dtype.type(self.factor)


@dataclass(frozen=True)
class Fixed(Composite):
    """``k(x, z) = part(x, z)``, whose lengthscales are given: no search, and no `with_lengthscale`, changes them.

    An expression has it where it gives one lengthscale and leaves another one to be found.
    """

    part: Kernel

    name: ClassVar[str] = "fixed"
    PARTS: ClassVar[tuple[str, ...]] = ("part",)

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return self.part.stationary

    def prepare(self, Z: Unchecked) -> PreparedKernel:
        return self.part.prepare(Z)

    def diagonal(self, X: Unchecked) -> Float:
        return self.part.diagonal(X)

    def with_lengthscale(self, lengthscale: Unchecked) -> Self:
        return self
