"""The Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.kernels.base import Formula, Metric, StationaryKernel, Transform

__all__ = ["Gaussian"]


@dataclass(frozen=True)
class Gaussian(StationaryKernel):
    """``k(x, z) = exp(-r^2 / 2)``,  ``r^2 = sum_j ((x_j - z_j) / lengthscale_j)^2``.

    Parameters
    ----------
    lengthscale : float or one per feature
        In the units of the features. scikit-learn's ``gamma`` of `rbf` is ``1 / (2 lengthscale^2)``.
    """

    name: ClassVar[str] = "gaussian"

    def formula(self, n_features: int) -> Formula:
        return Formula(Metric.SQUARED, Transform.EXP, self.weights(n_features), factor=0.5)
