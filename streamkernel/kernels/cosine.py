"""The cosine kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.kernels._formula import POWER, Formula, Metric, Transform
from streamkernel.kernels.formula_kernels import FormulaKernel
from streamkernel.kernels.parameters import checked_rows
from streamkernel.type_aliases import Float, Unchecked


@dataclass(frozen=True)
class Cosine(FormulaKernel):
    """``k(x, z) = x.z / (|x| |z|)``, the cosine of the angle between two rows; scikit-learn's "cosine".

    A row of zeros has no direction: its kernel values are 0, also ``k(0, 0)``. The kernel is then still an inner
    product, of rows divided by their norms where these are not 0, and so positive semi-definite.
    """

    name: ClassVar[str] = "cosine"
    transforms: ClassVar[tuple[Transform, ...]] = (POWER,)

    def formula(self, n_features: int) -> Formula:
        return Formula(Metric.COSINE, POWER, np.ones(n_features))

    def diagonal(self, X: Unchecked) -> Float:
        return np.where(np.any(checked_rows(X) != 0, axis=1), 1.0, 0.0)
