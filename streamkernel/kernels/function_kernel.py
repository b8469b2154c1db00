"""A kernel that is a function of a user's own, of two blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.errors import DTypeError, NonFiniteDataError, ParameterError, ShapeError
from streamkernel.kernels.base import Kernel, KernelConfig, PreparedKernel
from streamkernel.kernels.parameters import checked_rows
from streamkernel.type_aliases import AnyArray, Float, Unchecked

_DIAGONAL_ROWS = 16  # whose matrix is computed for the sake of its diagonal
_ROUNDING = 1e-8  # of symmetry and of eigenvalues, as a share of the largest value


def function_path(function: Callable[..., Unchecked]) -> str:
    """Name of a function in a configuration, ``module:name``."""
    return ":".join(str(getattr(function, name, "<unnamed>")) for name in ("__module__", "__qualname__"))


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """``k(A, B) = function(A, B)``, (a, b) for rows A (a, p) and B (b, p), in float64.

    Parameters
    ----------
    function : callable
        It stands under its name in a module, and so on workers too; each value depends on its two rows alone. If it has
        an attribute ``diag``, ``function.diag(A)`` (a,) is ``k(x, x)`` of each row; else this is the diagonal of the
        matrices of 16 rows at a time.
    """

    function: Callable[[Float, Float], Unchecked]

    name: ClassVar[str] = "function"

    def __post_init__(self) -> None:
        path = self.path
        if "<" in path:
            raise ParameterError(
                f"the kernel {path} is a lambda, or a function within another one, and a model could not name it; give "
                "a function that is defined at the top of a module"
            )

    @property
    def path(self) -> str:
        """Where the function stands."""
        return function_path(self.function)

    def prepare(self, Z: Unchecked) -> PreparedKernel:
        return PreparedFunction(self, checked_rows(Z, "Z"))

    def diagonal(self, X: Unchecked) -> Float:
        rows = checked_rows(X).astype(np.float64)
        own = getattr(self.function, "diag", None)
        if own is not None:
            found = np.asarray(own(rows), dtype=np.float64)
            if found.shape != (len(rows),):
                raise ShapeError(
                    f"{self.path}.diag returned the shape {found.shape} for {len(rows)} rows; return a value for each"
                )
            return found
        values = np.empty(len(rows))
        for start in range(0, len(rows), _DIAGONAL_ROWS):
            part = rows[start : start + _DIAGONAL_ROWS]
            values[start : start + _DIAGONAL_ROWS] = np.diagonal(self.values(part, part))
        return values

    def values(self, A: Float, B: Float) -> Float:
        """``function(A, B)``.

        Raises
        ------
        ShapeError
            It is no matrix (a, b).
        DTypeError
            Its values are no real numbers.
        """
        found = np.asarray(self.function(A, B))
        if found.dtype.kind not in "biuf":
            raise DTypeError(f"the kernel {self.path} returned values of {found.dtype}; return real numbers")
        found = found.astype(np.float64, copy=False)
        if found.shape != (len(A), len(B)):
            raise ShapeError(
                f"the kernel {self.path} returned the shape {found.shape} for {len(A)} and {len(B)} rows; return a "
                f"matrix ({len(A)}, {len(B)})"
            )
        return found

    def with_lengthscale(self, lengthscale: Unchecked) -> Kernel:
        return self

    def check_features(self, n_features: int) -> None:
        """Nothing: the function is tried on rows by `check_values`."""

    def check_values(self, X: AnyArray) -> None:
        rows = checked_rows(X).astype(np.float64)
        K = self.values(rows, rows)
        if not np.isfinite(K).all():
            raise NonFiniteDataError(f"the kernel {self.path} has values that are not finite on rows of the table")
        largest = float(np.abs(K).max(initial=0.0))
        if np.abs(K - K.T).max(initial=0.0) > _ROUNDING * largest:
            raise ParameterError(f"the kernel {self.path} is not symmetric: k(a, b) and k(b, a) differ")
        part = self.values(rows[:1], rows[1:])
        if np.abs(part - K[:1, 1:]).max(initial=0.0) > _ROUNDING * largest:
            raise ParameterError(
                f"the kernel {self.path} has other values for one row than for several; each must depend on its two "
                "rows alone"
            )
        if np.abs(self.diagonal(rows) - np.diagonal(K)).max(initial=0.0) > _ROUNDING * largest:
            raise ParameterError(f"{self.path}.diag has other values than the diagonal of the kernel matrix")
        if len(K) and np.linalg.eigvalsh(0.5 * (K + K.T))[0] < -_ROUNDING * largest * len(K):
            raise ParameterError(
                f"the kernel {self.path} is not positive definite: that of {len(K)} rows has an eigenvalue below 0"
            )

    def to_config(self) -> KernelConfig:
        """The place of the function, which must be handed over where this is read."""
        config = KernelConfig({"kernel": self.path})
        config.function = self.function
        return config


class PreparedFunction(PreparedKernel):
    """A function with its points in float64."""

    def __init__(self, kernel: FunctionKernel, points: AnyArray) -> None:
        super().__init__(kernel, points)
        self._values, self._points = kernel.values, np.ascontiguousarray(points, dtype=np.float64)

    def fill(self, X: AnyArray, out: AnyArray) -> None:
        out[...] = self._values(np.asarray(X, dtype=np.float64), self._points)
