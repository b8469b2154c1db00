"""The linear kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamkernel.kernels.formula import Formula, Metric, Transform
from streamkernel.kernels.formula_kernels import FormulaKernel
from streamkernel.kernels.parameters import checked_rows
from streamkernel.kernels.transforms import POWER

__all__ = ["Linear"]


@dataclass(frozen=True)
class Linear(FormulaKernel):
    """``k(x, z) = x.z``."""

    name: ClassVar[str] = "linear"
    transforms: ClassVar[tuple[Transform, ...]] = (POWER,)

    def formula(self, n_features: int) -> Formula:
        return Formula(Metric.INNER, POWER, np.ones(n_features))

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        rows = checked_rows(X)
        squares: NDArray[np.float64] = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        return squares
