"""The Laplacian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.kernels.formulas.formula_kernels import Distance, StationaryKernel
from streamkernel.kernels.loops.formula import EXP, Formula, Metric, Transform


@dataclass(frozen=True)
class Laplacian(StationaryKernel):
    """``k(x, z) = exp(-r)``,  ``r = sum_j |x_j - z_j| / lengthscale_j``: the L1 distance, as in scikit-learn.

    Parameters
    ----------
    lengthscale : float or one per feature
        In the units of the features. scikit-learn's ``gamma`` of `laplacian` is ``1 / lengthscale``.
    """

    name: ClassVar[str] = "laplacian"
    transforms: ClassVar[tuple[Transform, ...]] = (EXP,)
    distance: ClassVar[Distance] = "cityblock"

    def formula(self, n_features: int) -> Formula:
        return Formula(Metric.ABSOLUTE, EXP, self.weights(n_features))

    def slope(self, formula: Formula) -> tuple[Formula, float]:
        return formula, formula.factor

    @classmethod
    def lengthscale_of_gamma(cls, gamma: float) -> float:
        return 1.0 / gamma
