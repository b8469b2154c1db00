"""The linear kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.kernels.base import PreparedKernel
from streamkernel.kernels.formulas.formula_kernels import FormulaKernel, Pairs, squares_of
from streamkernel.kernels.loops.formula import POWER, Formula, Metric, Transform
from streamkernel.kernels.parameters import checked_rows
from streamkernel.type_aliases import AnyArray, Float, Unchecked


class PreparedColumns(PreparedKernel):
    """The linear kernel at the p unit vectors: its values are the columns, without p^2 products a row."""

    def fill(self, X: AnyArray, out: AnyArray) -> None:
        out[...] = X


@dataclass(frozen=True)
class Linear(FormulaKernel):
    """``k(x, z) = x.z``."""

    name: ClassVar[str] = "linear"
    transforms: ClassVar[tuple[Transform, ...]] = (POWER,)

    def formula(self, n_features: int) -> Formula:
        return Formula(Metric.INNER, POWER, np.ones(n_features))

    def prepare(self, Z: Unchecked) -> PreparedKernel:
        points = checked_rows(Z, "Z")
        n, p = points.shape
        if n == p and np.array_equal(points, np.eye(p)):
            return PreparedColumns(self, points)
        return super().prepare(points)

    def row_slopes(self, points: Float) -> Callable[[Float], Pairs]:
        return lambda X: (np.ones((len(X), len(points))), None)

    def diagonal(self, X: Unchecked) -> Float:
        return squares_of(checked_rows(X))
