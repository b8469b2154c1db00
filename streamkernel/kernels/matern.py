"""The Matern kernels of half-integer order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.errors import ParameterError
from streamkernel.kernels.base import Formula, Metric, StationaryKernel, Transform
from streamkernel.kernels.parameters import checked_number

__all__ = ["Matern"]

TRANSFORMS = {0.5: Transform.MATERN12, 1.5: Transform.MATERN32, 2.5: Transform.MATERN52}


@dataclass(frozen=True)
class Matern(StationaryKernel):
    """With ``r^2 = 2 nu sum_j ((x_j - z_j) / lengthscale_j)^2``::

        nu = 1/2:  k(x, z) = exp(-r)
        nu = 3/2:  k(x, z) = (1 + r) exp(-r)
        nu = 5/2:  k(x, z) = (1 + r + r^2 / 3) exp(-r)

    Parameters
    ----------
    lengthscale : float or one per feature
        In the units of the features.
    nu : 0.5, 1.5 or 2.5
        The functions are differentiable ``ceil(nu) - 1`` times.

    References
    ----------
    Rasmussen & Williams 2006, eq. (4.17).
    """

    nu: float = 1.5

    name: ClassVar[str] = "matern"

    def __post_init__(self) -> None:
        super().__post_init__()
        nu = checked_number("nu", self.nu)
        if nu not in TRANSFORMS:
            raise ParameterError(f"nu = {self.nu!r} is no order we have; give 0.5, 1.5 or 2.5 (Gaussian is infinity)")
        object.__setattr__(self, "nu", nu)

    def formula(self, n_features: int) -> Formula:
        return Formula(Metric.SQUARED, TRANSFORMS[self.nu], self.weights(n_features), factor=2.0 * self.nu)
