"""Base classes of kernels with one formula: those of any metric, and those of the distance between two rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.kernels.base import Kernel, PreparedKernel
from streamkernel.kernels.loops.formula import Formula, Transform
from streamkernel.kernels.loops.prepared import PreparedFormula
from streamkernel.kernels.parameters import Lengthscale, checked_lengthscale, checked_rows
from streamkernel.type_aliases import AnyArray, Float, Unchecked

Pairs: TypeAlias = tuple[Float, Float | None]
"""(alpha, beta) of pairs of rows and points, (c, n) each: ``dk(x, z) / dx = alpha z - beta x``; None for zeros."""


Distance: TypeAlias = Literal["euclidean", "cityblock", "hamming"]
"""A distance, by its name in SciPy."""


def squares_of(rows: AnyArray) -> Float:
    """``|x|^2`` of each row in float64, (b,)."""
    squares: Float = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return squares


class FormulaKernel(Kernel):
    """A kernel of one formula; the compiled loops fill its blocks.

    Attributes
    ----------
    transforms : the transforms that its formula may have; `loops_of_kernels` has them.
    """

    transforms: ClassVar[tuple[Transform, ...]] = ()

    @abstractmethod
    def formula(self, n_features: int) -> Formula:
        """The formula for rows of `n_features` features."""

    def row_slopes(self, points: Float) -> Callable[[Float], Pairs]:
        """Function that computes the `Pairs` of rows X (c, p) and points (n, p), in new arrays.

        A kernel of a distance has a `slope` instead, from which its gradient is computed on centred rows.

        Raises
        ------
        ParameterError
            The kernel has no gradient.
        """
        raise ParameterError(
            f"{self!r} has no gradient by a row that we can compute; take a kernel of a distance, such as Gaussian"
        )

    def check_features(self, n_features: int) -> None:
        """Accepts any number of features."""

    def prepare(self, Z: Unchecked) -> PreparedKernel:
        points = checked_rows(Z, "Z")
        self.check_features(points.shape[1])
        return PreparedFormula(self, self.formula(points.shape[1]), points)

    def with_lengthscale(self, lengthscale: Unchecked) -> Kernel:
        checked_lengthscale(lengthscale)
        return self


@dataclass(frozen=True)
class LengthscaleKernel(Kernel):
    """A kernel of a distance between two rows, in units of a lengthscale: ``k(x, x) = 1``.

    Attributes
    ----------
    distance : the distance between `coordinates`.
    """

    lengthscale: Lengthscale = 1.0

    stationary: ClassVar[bool] = True
    distance: ClassVar[Distance] = "euclidean"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", checked_lengthscale(self.lengthscale))

    def check_features(self, n_features: int) -> None:
        if isinstance(self.lengthscale, tuple) and len(self.lengthscale) != n_features:
            raise ParameterError(
                f"lengthscale has {len(self.lengthscale)} entries for {n_features} features;"
                " give one number, or one per feature"
            )

    def coordinates(self, X: Float) -> Float:
        """Rows (b, .) between which the distance is measured."""
        return X

    def weights(self, n_features: int) -> Float:
        """``1 / lengthscale`` of each feature, (p,)."""
        lengths = np.asarray(self.lengthscale, dtype=np.float64)
        return np.ascontiguousarray(np.broadcast_to(1.0 / lengths, (n_features,)))

    @classmethod
    def lengthscale_of_gamma(cls, gamma: float) -> float | None:
        """The lengthscale that scikit-learn's `gamma` stands for; None where there is no such kernel."""
        return None

    def with_lengthscale(self, lengthscale: Unchecked) -> Self:
        parameters = {f.name: getattr(self, f.name) for f in fields(self)}
        return type(self)(**{**parameters, "lengthscale": lengthscale})

    def diagonal(self, X: Unchecked) -> Float:
        rows = np.asarray(X)
        if rows.ndim != 2:
            raise ShapeError(f"X has {rows.ndim} dimensions; give a table of rows of shape (rows, features)")
        self.check_features(rows.shape[1])
        return np.ones(len(rows))


@dataclass(frozen=True)
class StationaryKernel(LengthscaleKernel, FormulaKernel):
    """A kernel of the scaled distance between two rows, the Euclidean one or that of absolute differences."""

    @abstractmethod
    def slope(self, formula: Formula) -> tuple[Formula, float]:
        """``-2 dk/ds`` (``-dk/ds`` for absolute differences) of its formula, as a formula times a constant."""
