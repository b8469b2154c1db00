"""Losses of large margin methods, and the sums of the methods that minimise them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.reductions.margins.active_set import ActiveSetStep, ActiveSetSums
    from streamkernel.reductions.margins.band import Band, BandRows, largest_band
    from streamkernel.reductions.margins.interior_point import InteriorPath, InteriorPointStep, InteriorPointSums
    from streamkernel.reductions.margins.lagrangian import LagrangianStep, LagrangianSums
    from streamkernel.reductions.margins.losses import (
        EpsilonInsensitive,
        Hinge,
        Huber,
        Kink,
        Logistic,
        Loss,
        OneClass,
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
    from streamkernel.reductions.margins.prices import PricedFunction, PriceRows, Prices, violations
    from streamkernel.reductions.margins.step_sums import StepSums, TraceSums
    from streamkernel.reductions.margins.targets import PairTarget, Target, class_pairs
    from streamkernel.reductions.margins.violators import ViolatingRows, Violators
else:
    __getattr__ = on_demand(
        __name__,
        {
            "active_set": "ActiveSetStep ActiveSetSums",
            "band": "Band BandRows largest_band",
            "interior_point": "InteriorPath InteriorPointStep InteriorPointSums",
            "lagrangian": "LagrangianStep LagrangianSums",
            "losses": (
                "EpsilonInsensitive Hinge Huber Kink Logistic Loss OneClass PiecewiseLinear Pinball Slopes Smooth "
                "SmoothedHinge Squared SquaredEpsilonInsensitive SquaredHinge"
            ),
            "newton": "Line SmoothStep SmoothSums",
            "prices": "PricedFunction PriceRows Prices violations",
            "step_sums": "StepSums TraceSums",
            "targets": "PairTarget Target class_pairs",
            "violators": "ViolatingRows Violators",
        },
    )

__all__ = [
    "Band",
    "BandRows",
    "ActiveSetStep",
    "ActiveSetSums",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "InteriorPath",
    "InteriorPointStep",
    "InteriorPointSums",
    "Kink",
    "LagrangianStep",
    "LagrangianSums",
    "Line",
    "Logistic",
    "Loss",
    "OneClass",
    "PiecewiseLinear",
    "Pinball",
    "PriceRows",
    "PricedFunction",
    "Prices",
    "Slopes",
    "Smooth",
    "SmoothStep",
    "SmoothSums",
    "SmoothedHinge",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "StepSums",
    "Target",
    "PairTarget",
    "class_pairs",
    "TraceSums",
    "ViolatingRows",
    "Violators",
    "largest_band",
    "violations",
]
