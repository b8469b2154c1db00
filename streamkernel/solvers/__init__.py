"""Coefficients from sums: init once, solve many."""

from streamkernel.solvers.lengthscale import LengthscaleChoice, choose_lengthscale, median_lengthscale
from streamkernel.solvers.ridge import RidgeSolution, RidgeSystem

__all__ = [
    "LengthscaleChoice",
    "RidgeSolution",
    "RidgeSystem",
    "choose_lengthscale",
    "median_lengthscale",
]
