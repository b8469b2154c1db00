"""Kernel matching pursuit: few functions of a large dictionary, picked one by one by their gain on the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.pursuit._pursuing import Pursued, pursue
    from streamkernel.pursuit.choices import AUTO, DRAWS, LOSSES, POOLS, VARIANTS, share_of
    from streamkernel.pursuit.path import PursuitPath, PursuitSelection
    from streamkernel.pursuit.pools import Pools
    from streamkernel.pursuit.rule import MatchingPursuit
    from streamkernel.pursuit.stages import Stages
else:
    __getattr__ = on_demand(
        __name__,
        {
            "choices": "AUTO DRAWS LOSSES POOLS VARIANTS share_of",
            "path": "PursuitPath PursuitSelection",
            "pools": "Pools",
            "_pursuing": "Pursued pursue",
            "rule": "MatchingPursuit",
            "stages": "Stages",
        },
    )

__all__ = [
    "AUTO",
    "DRAWS",
    "LOSSES",
    "POOLS",
    "VARIANTS",
    "MatchingPursuit",
    "Pools",
    "Pursued",
    "PursuitPath",
    "PursuitSelection",
    "Stages",
    "pursue",
    "share_of",
]
