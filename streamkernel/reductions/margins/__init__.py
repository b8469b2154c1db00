"""Losses of large margin methods, and the sums of the methods that minimise them."""

from streamkernel.reductions.margins.interior_point import InteriorPath, InteriorPointStep, InteriorPointSums
from streamkernel.reductions.margins.losses import EpsilonInsensitive, Hinge, Kink, PiecewiseLinear, Pinball

__all__ = [
    "EpsilonInsensitive",
    "Hinge",
    "InteriorPath",
    "InteriorPointStep",
    "InteriorPointSums",
    "Kink",
    "PiecewiseLinear",
    "Pinball",
]
