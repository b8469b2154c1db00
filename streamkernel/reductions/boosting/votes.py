"""Predictions by a weighted vote of members."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamkernel.reductions.boosting.members import Members
from streamkernel.reductions.predictions.curves import Curves, class_probabilities
from streamkernel.reductions.row_map import ProbabilityMap, RowMap
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float


@dataclass(frozen=True)
class Votes(RowMap):
    """``V_c(x) = sum of a_t over the members that give class c / sum of a``; with `argmax` the class of the largest.

    In a soft vote each a_t of the first sum is times the confidence of the member.
    Of classes with equally many the first is taken.

    Parameters
    ----------
    members : T members; weights : (T,) a.
    """

    members: Members
    weights: Float
    argmax: bool = False

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        if self.argmax:
            return {"prediction": (None, np.dtype(np.int64))}
        return {"prediction": (self.members.classes, np.dtype(np.float64))}

    def first(self, size: int) -> Votes:
        """The vote of the first members."""
        return replace(self, members=self.members.part(0, size), weights=self.weights[:size])

    def of_codes(self, codes: AnyArray) -> Float:
        """Votes (b, C) of codes (b, T)."""
        return np.asarray(self.members.votes(codes, self.weights) / self.weights.sum())

    def values(self, X: AnyArray) -> Float:
        """Votes (b, C), in sum 1 at most."""
        return self.of_codes(self.members.codes(X))

    def check_values(self, X: AnyArray) -> dict[str, Float]:
        """The values that are compared with the targets."""
        return {"predicted": self.values(X)}

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        V = self.values(block.X)
        return {"prediction": V.argmax(axis=1) if self.argmax else V}

    def scratch_bytes(self, rows: int) -> int:
        return self.members.scratch_bytes(rows) + 24 * rows * self.members.classes

    def flops_per_row(self) -> float:
        return self.members.flops_per_row() + 5.0 * len(self.members)


@dataclass(frozen=True)
class CalibratedVotes(ProbabilityMap):
    """Probabilities by curves of the votes; the predicted class is that of the most votes.

    Parameters
    ----------
    votes : the vote; curves : of ``V_1 - V_0`` for two classes, else of ``2 V_c - 1``.
    """

    votes: Votes
    curves: Curves

    @property
    def classes(self) -> int:
        return self.votes.members.classes

    def _probabilities(self, V: Float) -> Float:
        return class_probabilities(V if self.classes == 2 else 2.0 * V - 1.0, self.curves)

    def probabilities(self, X: AnyArray) -> Float:
        return self._probabilities(self.votes.values(X))

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        V = self.votes.values(block.X)
        # Labels are those of the vote: calibration says how sure they are, and changes none.
        return {"probability": self._probabilities(V), "prediction": V.argmax(axis=1)}

    def scratch_bytes(self, rows: int) -> int:
        return self.votes.scratch_bytes(rows) + 32 * rows * self.classes

    def flops_per_row(self) -> float:
        return self.votes.flops_per_row() + 60.0 * self.classes
