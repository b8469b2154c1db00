"""Average outer product of the gradients of fitted functions: which directions of the rows matter.

For functions ``f_o(x) = sum_j a_jo k(x, z_j)`` and row weights w (ones unless given)::

    A = sum_i w_i sum_o grad f_o(x_i) grad f_o(x_i)^T / sum_i w_i        (p, p)

`linalg.metric_factor` makes a metric of it (Radhakrishnan et al. 2024, "Mechanism for feature learning in neural
networks and backpropagation-free machine learning models", Science 383; ALGORITHMS 19). The gradients are those
by the rows of the table, as they are scaled. A constant that is added to a function does not change them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.basis import Basis
from streamkernel.kernels import FunctionGradient, function_gradient_bytes, prepare_function_gradient
from streamkernel.linalg import mirror_upper, syrk
from streamkernel.reductions.contract import SentAsFields, State, Sums
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class AverageGradientProduct:
    """The average, float64.

    Attributes
    ----------
    A : (p, p) symmetric, positive semi-definite up to rounding; zeros if the weights sum to 0
    weight : sum of the row weights
    count : number of rows
    """

    A: Float
    weight: float
    count: int


@dataclass(frozen=True)
class GradientProducts(SentAsFields, Sums[AverageGradientProduct]):
    """Accumulate the weighted outer products of gradients over the rows of a table.

    Parameters
    ----------
    basis : Basis of n functions; its kernel must have a gradient (`prepare_function_gradient`).
    coefficients : (n, d) of the kernel values, one column for each function f_o.
    scale : (d,) units of the functions, by which they are divided; ones by default. An infinite one leaves a function
        out.
    """

    basis: Basis
    coefficients: Float
    scale: Float | None = None

    @cached_property
    def gradient(self) -> FunctionGradient:
        """The gradient of the functions in their units, with the points of the basis packed."""
        a = self.coefficients if self.scale is None else self.coefficients / self.scale
        return prepare_function_gradient(self.basis.kernel, self.basis.points, a)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        p = self.basis.points.shape[1]
        return {"A": (p, p), "totals": (2,)}

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"A"})

    def fold(self, state: State, block: RowBlock) -> State:
        p = block.X.shape[1]
        # Roots of the weights on both factors, so that SYRK computes the weighted sum.
        roots = None if block.weights is None else np.sqrt(block.weights)[:, None, None]
        for rows, _, gradients in self.gradient.pieces(block.X):
            if roots is not None:
                gradients *= roots[rows]
            syrk(gradients.reshape(-1, p), into=state["A"])
        state["totals"] += [len(block.X), block.row_weights.sum()]
        return state

    def finalize(self, state: State) -> AverageGradientProduct:
        count, weight = (float(value) for value in state["totals"])
        A = mirror_upper(state["A"])
        A /= weight or 1.0
        return AverageGradientProduct(A, weight, int(count))

    def scratch_bytes(self, rows: int) -> int:
        (n, p), d = self.basis.points.shape, self.coefficients.shape[1]
        return function_gradient_bytes(self.basis.kernel, rows, n, p, d) + 8 * 2 * rows

    def flops_per_row(self) -> float:
        (n, p), d = self.basis.points.shape, self.coefficients.shape[1]
        return float(2 * n * (p + d * (p + 1)) + d * p * p)
