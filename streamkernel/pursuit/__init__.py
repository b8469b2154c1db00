"""Kernel matching pursuit: few functions of a large dictionary, picked one by one by their gain on the targets."""

from streamkernel.pursuit.path import PursuitPath, PursuitSelection
from streamkernel.pursuit.pools import DRAWS, POOLS, Pools
from streamkernel.pursuit.pursue import VARIANTS, Pursued, pursue
from streamkernel.pursuit.rule import LOSSES, MatchingPursuit
from streamkernel.pursuit.stage_errors import AUTO, share_of
from streamkernel.pursuit.stages import Stages

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
