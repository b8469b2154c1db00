"""The polynomial kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.kernels.formulas.formula_kernels import FormulaKernel, Pairs, squares_of
from streamkernel.kernels.loops.formula import POWER, Formula, Metric, Transform
from streamkernel.kernels.loops.prepared import PreparedFormula
from streamkernel.kernels.parameters import checked_integer, checked_number, checked_rows
from streamkernel.type_aliases import Float, Unchecked
from streamkernel.wording import option

_MOST_DEGREE = 100


@dataclass(frozen=True)
class Polynomial(FormulaKernel):
    """``k(x, z) = (gamma x.z + coef0)^degree``.

    Parameters
    ----------
    degree : int
        From 1 to 100, so that powers for rows of usual scale stay in the range of floating point.
    gamma : float or None
        Factor of the inner product; None for ``1 / p``, as in scikit-learn.
    coef0 : float
        At least 0: with a negative one the kernel is not positive semi-definite.
    """

    degree: int = 3
    gamma: float | None = None
    coef0: float = 1.0

    name: ClassVar[str] = "polynomial"
    transforms: ClassVar[tuple[Transform, ...]] = (POWER,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", checked_integer("degree", self.degree))
        if self.degree > _MOST_DEGREE:
            raise ParameterError(
                f"{option('degree')} = {self.degree} is out of range; give an integer from 1 to {_MOST_DEGREE}"
            )
        object.__setattr__(self, "coef0", checked_number("coef0", self.coef0, zero=True))
        if self.gamma is not None:
            object.__setattr__(self, "gamma", checked_number("gamma", self.gamma))

    def formula(self, n_features: int) -> Formula:
        gamma = 1.0 / max(1, n_features) if self.gamma is None else self.gamma
        ones = np.ones(n_features)
        return Formula(Metric.INNER, POWER, ones, factor=gamma, offset=self.coef0, shape=float(self.degree))

    def row_slopes(self, points: Float) -> Callable[[Float], Pairs]:
        """``alpha = gamma degree (gamma x.z + coef0)^(degree - 1)``."""
        formula = self.formula(points.shape[1])
        constant = formula.factor * self.degree
        if self.degree == 1:
            return lambda X: (np.full((len(X), len(points)), constant), None)
        prepared = PreparedFormula(self, replace(formula, shape=formula.shape - 1.0), points)
        return lambda X: (constant * prepared.block(X), None)

    def diagonal(self, X: Unchecked) -> Float:
        rows = checked_rows(X)
        result: Float = (self.formula(rows.shape[1]).factor * squares_of(rows) + self.coef0) ** self.degree
        return result
