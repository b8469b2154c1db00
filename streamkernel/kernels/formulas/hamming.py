"""The Hamming kernel, for columns that are codes of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.kernels.formulas.formula_kernels import Distance, FormulaKernel, LengthscaleKernel
from streamkernel.kernels.loops.formula import EXP, Formula, Metric, Transform


@dataclass(frozen=True)
class Hamming(LengthscaleKernel, FormulaKernel):
    """``k(x, z) = exp(-sum_j [x_j != z_j] / lengthscale_j)``: of the number of columns that differ.

    The size of a difference means nothing, so that codes may be any numbers. It is a product over columns of 1 where
    they are equal and ``exp(-1 / lengthscale_j)`` where not, and so positive definite: up to a constant the diffusion
    kernel of a graph whose edges join any two categories.

    Parameters
    ----------
    lengthscale : float or one per feature
        The number of columns that differ for a kernel value of ``1 / e``.

    References
    ----------
    Kondor & Lafferty 2002, "Diffusion kernels on graphs and other discrete input spaces".
    """

    name: ClassVar[str] = "hamming"
    transforms: ClassVar[tuple[Transform, ...]] = (EXP,)
    distance: ClassVar[Distance] = "hamming"

    def formula(self, n_features: int) -> Formula:
        return Formula(Metric.DIFFERENT, EXP, self.weights(n_features))

    def slope(self, formula: Formula) -> tuple[Formula, float]:
        """``-dk/ds`` of its formula, s being the weighted number of columns that differ."""
        return formula, formula.factor
