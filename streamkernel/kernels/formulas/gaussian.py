"""The Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.kernels.formulas.formula_kernels import StationaryKernel
from streamkernel.kernels.loops.formula import EXP, Formula, Metric, Transform


@dataclass(frozen=True)
class Gaussian(StationaryKernel):
    """``k(x, z) = exp(-r^2 / 2)``,  ``r^2 = sum_j ((x_j - z_j) / lengthscale_j)^2``.

    Parameters
    ----------
    lengthscale : float or one per feature
        In the units of the features. scikit-learn's ``gamma`` of `rbf` is ``1 / (2 lengthscale^2)``.
    """

    name: ClassVar[str] = "gaussian"
    transforms: ClassVar[tuple[Transform, ...]] = (EXP,)

    def formula(self, n_features: int) -> Formula:
        return Formula(Metric.SQUARED, EXP, self.weights(n_features), factor=0.5)

    def slope(self, formula: Formula) -> tuple[Formula, float]:
        return formula, 2.0 * formula.factor

    @classmethod
    def lengthscale_of_gamma(cls, gamma: float) -> float:
        return float(1.0 / np.sqrt(2.0 * gamma))
