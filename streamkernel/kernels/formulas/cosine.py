"""The cosine kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.kernels.formulas.formula_kernels import FormulaKernel, Pairs, squares_of
from streamkernel.kernels.loops.formula import POWER, Formula, Metric, Transform
from streamkernel.kernels.parameters import checked_rows
from streamkernel.type_aliases import Float, Unchecked


def inverse_norms(rows: Float) -> Float:
    """``1 / |x|`` of each row, (b,); 0 for a row of zeros."""
    norms = np.sqrt(squares_of(rows))
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)


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

    def row_slopes(self, points: Float) -> Callable[[Float], Pairs]:
        """``alpha = 1 / (|x| |z|)``, ``beta = k / |x|^2``; 0 for rows of zeros, where k has no gradient."""
        prepared, lengths = self.prepare(points), inverse_norms(points)

        def slopes(X: Float) -> Pairs:
            of_rows = inverse_norms(X)
            return np.multiply.outer(of_rows, lengths), prepared.block(X) * (of_rows**2)[:, None]

        return slopes

    def diagonal(self, X: Unchecked) -> Float:
        return np.where(np.any(checked_rows(X) != 0, axis=1), 1.0, 0.0)
