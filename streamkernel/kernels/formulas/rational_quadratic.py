"""The rational quadratic kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from streamkernel.kernels.formulas.formula_kernels import StationaryKernel
from streamkernel.kernels.loops.formula import Formula, Metric, Transform
from streamkernel.kernels.loops.functions import compiled_value, exponential, logarithm
from streamkernel.kernels.parameters import checked_number


@compiled_value
def power_of_distance(s, x, z, constants):  # type: ignore[no-untyped-def]  # Numba infers them
    factor, _, high, low, cut, shape, largest = constants
    t = factor * s
    return exponential(shape * logarithm(largest if t > largest else t), high, low, cut)


RATIONAL = Transform(
    power_of_distance,
    slope=lambda shape: shape,
    rate=lambda factor: 1.0,  # 2^(-shape log2(1 + t))
    largest=(1e38, 1e308),  # the values decay by a power only: all distances count
)
"""``(1 + t)^-shape``"""


@dataclass(frozen=True)
class RationalQuadratic(StationaryKernel):
    """``k(x, z) = (1 + r^2 / (2 shape))^-shape``,  ``r^2 = sum_j ((x_j - z_j) / lengthscale_j)^2``.

    It is a mixture of Gaussian kernels over lengthscales, and tends to the Gaussian kernel as ``shape`` goes to
    infinity.

    Parameters
    ----------
    lengthscale : float or one per feature
        In the units of the features.
    shape : float
        Called ``alpha`` in the same kernel of scikit-learn; in streamkernel `alpha` is always the ridge.

    References
    ----------
    Rasmussen & Williams 2006, eq. (4.19).
    """

    shape: float = 1.0

    name: ClassVar[str] = "rational_quadratic"
    transforms: ClassVar[tuple[Transform, ...]] = (RATIONAL,)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shape", checked_number("shape", self.shape))

    def formula(self, n_features: int) -> Formula:
        return Formula(Metric.SQUARED, RATIONAL, self.weights(n_features), factor=0.5 / self.shape, shape=self.shape)

    def slope(self, formula: Formula) -> tuple[Formula, float]:
        return replace(formula, shape=formula.shape + 1.0), 2.0 * formula.factor * formula.shape
