"""The sigmoid function of an inner product, which is not positive semi-definite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.kernels.formulas.formula_kernels import FormulaKernel, Pairs, squares_of
from streamkernel.kernels.loops.formula import POWER, Formula, Metric, Transform
from streamkernel.kernels.loops.prepared import PreparedFormula
from streamkernel.kernels.parameters import checked_number, checked_rows
from streamkernel.type_aliases import AnyArray, Float, Unchecked
from streamkernel.wording import option


@dataclass(frozen=True)
class Sigmoid(FormulaKernel):
    """``k(x, z) = tanh(gamma x.z + coef0)``, scikit-learn's "sigmoid".

    It is symmetric, but its matrices have eigenvalues of both signs, so that it is not an inner product of features.
    Only methods for any function of two rows, such as matching pursuit, accept it.

    Parameters
    ----------
    gamma : float or None
        Factor of the inner product; None for ``1 / p``, as in scikit-learn.
    coef0 : float
        Constant of either sign.
    """

    gamma: float | None = None
    coef0: float = 1.0

    name: ClassVar[str] = "sigmoid"
    transforms: ClassVar[tuple[Transform, ...]] = (POWER,)

    def __post_init__(self) -> None:
        magnitude = checked_number("coef0", abs(self.coef0) if _is_real(self.coef0) else self.coef0, zero=True)
        object.__setattr__(self, "coef0", float(np.copysign(magnitude, self.coef0)))
        if self.gamma is not None:
            object.__setattr__(self, "gamma", checked_number("gamma", self.gamma))

    @property
    def positive_definite(self) -> bool:
        return False

    def formula(self, n_features: int) -> Formula:
        """Formula of the argument of tanh."""
        gamma = 1.0 / max(1, n_features) if self.gamma is None else self.gamma
        return Formula(Metric.INNER, POWER, np.ones(n_features), factor=gamma, offset=self.coef0)

    def prepare(self, Z: Unchecked) -> PreparedFormula:
        points = checked_rows(Z, "Z")
        return _PreparedSigmoid(self, self.formula(points.shape[1]), points)

    def row_slopes(self, points: Float) -> Callable[[Float], Pairs]:
        """``alpha = gamma (1 - k^2)``."""
        prepared = self.prepare(points)
        gamma = prepared.formula.factor
        return lambda X: (gamma * (1.0 - prepared.block(X) ** 2), None)

    def diagonal(self, X: Unchecked) -> Float:
        rows = checked_rows(X)
        values: Float = np.tanh(self.formula(rows.shape[1]).factor * squares_of(rows) + self.coef0)
        return values


class _PreparedSigmoid(PreparedFormula):
    """The loops fill the argument; tanh is applied in place."""

    def fill(self, X: AnyArray, out: AnyArray) -> None:
        super().fill(X, out)
        np.tanh(out, out=out)


def _is_real(value: object) -> bool:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ParameterError(f"{option('coef0')} = {value!r} is not a number; give a float")
    return True
