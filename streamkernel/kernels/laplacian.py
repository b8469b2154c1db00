"""The Laplacian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.kernels.base import Formula, Metric, StationaryKernel, Transform

__all__ = ["Laplacian"]


@dataclass(frozen=True)
class Laplacian(StationaryKernel):
    """``k(x, z) = exp(-r)``,  ``r = sum_j |x_j - z_j| / lengthscale_j``: the L1 distance, as in scikit-learn.

    Parameters
    ----------
    lengthscale : float or one per feature
        In the units of the features. scikit-learn's ``gamma`` of `laplacian` is ``1 / lengthscale``.
    """

    name: ClassVar[str] = "laplacian"

    def formula(self, n_features: int) -> Formula:
        return Formula(Metric.ABSOLUTE, Transform.EXP, self.weights(n_features))
