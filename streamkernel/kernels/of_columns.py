"""A kernel that sees some of the columns, for sums and products over groups of columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.kernels._mapped import MappedKernel
from streamkernel.kernels.base import Composite, Kernel
from streamkernel.kernels.parameters import checked_integer, checked_rows
from streamkernel.type_aliases import AnyArray, Float, Int, Unchecked


def checked_columns_seen(value: Unchecked) -> tuple[int, ...]:
    """Positions of columns, counted from 0, as ints; raises ParameterError otherwise."""
    given = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    columns = tuple(checked_integer(f"columns[{k}]", each, least=0) for k, each in enumerate(given))
    if not columns:
        raise ParameterError("columns are empty; give the positions of some, from 0 on")
    if len(set(columns)) < len(columns):
        raise ParameterError(f"columns = {list(columns)} have one twice; give each once")
    return columns


@dataclass(frozen=True)
class OfColumns(MappedKernel, Composite):
    """``k(x, z) = part(x[columns], z[columns])``: a kernel that sees some of the columns only.

    Sums of such kernels are additive models, each term a function of its own columns; their products let a kernel of
    one kind see some columns, and one of another kind the others.

    Parameters
    ----------
    part : Kernel
        One lengthscale per feature is one for each of `columns`.
    columns : positions of columns, counted from 0

    References
    ----------
    Duvenaud, Nickisch & Rasmussen 2011, "Additive Gaussian processes".
    """

    part: Kernel
    columns: tuple[int, ...]

    name: ClassVar[str] = "of_columns"
    PARTS: ClassVar[tuple[str, ...]] = ("part",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", checked_columns_seen(self.columns))

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return self.part.stationary

    @property
    def formulas(self) -> int:
        return self.part.formulas + 1  # the columns of the points are a copy

    @property
    def inner(self) -> Kernel:
        return self.part

    def seen(self, columns: Int) -> Int:
        return columns[list(self.columns)]

    def check_features(self, n_features: int) -> None:
        if max(self.columns) >= n_features:
            raise ParameterError(
                f"the kernel {self.part.name} sees column {max(self.columns)}, and the rows have {n_features} features;"
                f" give columns from 0 to {n_features - 1}"
            )
        self.part.check_features(len(self.columns))

    def check_values(self, X: AnyArray) -> None:
        self.part.check_values(self.mapped(X))

    def mapped(self, X: AnyArray) -> AnyArray:
        return np.ascontiguousarray(X[:, list(self.columns)])

    def pulled_back(self, X: Float, gradients: Float) -> Float:
        found = np.zeros((*gradients.shape[:2], X.shape[1]))
        found[:, :, list(self.columns)] = gradients
        return found

    def diagonal(self, X: Unchecked) -> Float:
        rows = checked_rows(X)
        self.check_features(rows.shape[1])
        return self.part.diagonal(self.mapped(rows))
