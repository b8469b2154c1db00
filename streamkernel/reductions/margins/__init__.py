"""Losses of large margin methods, and the sums of the methods that minimise them."""

from streamkernel.reductions.margins.interior_point import InteriorPath, InteriorPointStep, InteriorPointSums
from streamkernel.reductions.margins.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Kink,
    Logistic,
    PiecewiseLinear,
    Pinball,
    Slopes,
    Smooth,
    SmoothedHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from streamkernel.reductions.margins.newton import Line, SmoothStep, SmoothSums

__all__ = [
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "InteriorPath",
    "InteriorPointStep",
    "InteriorPointSums",
    "Kink",
    "Line",
    "Logistic",
    "PiecewiseLinear",
    "Pinball",
    "Slopes",
    "Smooth",
    "SmoothStep",
    "SmoothSums",
    "SmoothedHinge",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
]
