"""The rational quadratic kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.kernels.base import Formula, Metric, StationaryKernel, Transform
from streamkernel.kernels.parameters import checked_number

__all__ = ["RationalQuadratic"]


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

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shape", checked_number("shape", self.shape))

    def formula(self, n_features: int) -> Formula:
        return Formula(
            Metric.SQUARED, Transform.RATIONAL, self.weights(n_features), factor=0.5 / self.shape, shape=self.shape
        )
