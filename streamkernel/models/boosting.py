"""A fitted vote of members: configuration and named arrays, in memory as on disk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import ClassVar, Self

import numpy as np

from streamkernel.models._calibrated import CalibratedModel
from streamkernel.models.predicting import PredictingModel
from streamkernel.records import Count, CountedTotals, ModelRecord, Record
from streamkernel.reductions.boosting import CalibratedVotes, Members, Votes
from streamkernel.settings.boosting import BOUNDED, BoostingSettingsRecord
from streamkernel.solvers.boosting import filtering_bound, training_bound
from streamkernel.type_aliases import Fields, Float

_MOST_FACTOR = 500.0  # of an error that is as small as numbers are; its exponential is a number


class MemberRecord(Record):
    """One member that was tried, and the vote of the members up to it.

    `rows` were drawn for it; `error` is that under its masses, `factor` its a. The other errors are shares of the rows,
    by weight, that the member, or the vote, gives a wrong class; None where that was not measured.
    """

    rows: Count
    error: float
    factor: float
    training_error: float | None
    validation_error: float | None
    vote_training_error: float | None
    vote_validation_error: float | None


class BoostingSolution(Record):
    """The members that were tried: those of the vote come first. `ended` says why there are no more."""

    method: str
    learner: str
    ended: str
    kept: Count
    rows: Count
    validation_rows: Count
    functions: Count
    members: tuple[MemberRecord, ...]


class BoostingRecord(ModelRecord):
    """The fields of boosting."""

    settings: BoostingSettingsRecord
    totals: CountedTotals
    solution: BoostingSolution


@dataclass(frozen=True)
class BoostingModel(CalibratedModel):
    """A fitted vote."""

    KIND: ClassVar[str] = "boosting"
    RECORD: ClassVar[type[BoostingRecord]] = BoostingRecord
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        **PredictingModel.SHAPES,
        "dual_coef": ("terms", "k"),
        "intercept": ("members", "k"),
        "member_positions": ("terms",),
        "member_ends": ("members",),
        "member_weights": ("members",),
        "margin_shares": ("2", "margins"),
    }
    WHOLE: ClassVar[frozenset[str]] = PredictingModel.WHOLE | {"member_positions", "member_ends"}
    _NOUN: ClassVar[str] = "boosting model"

    record: BoostingRecord

    @property
    def flat(self) -> bool:
        # Coefficients and constants are those of members: a column for each function.
        return False

    @cached_property
    def members(self) -> Members:
        """The members of the vote."""
        basis, arrays = self.basis, self.arrays
        return Members(
            basis.kernel,
            basis.points,
            arrays["member_positions"],
            arrays["member_ends"],
            arrays["dual_coef"],
            arrays["intercept"],
            self.target_count,
            self.soft,
        )

    @property
    def soft(self) -> bool:
        """Whether votes count by their confidence."""
        settings = self.record.settings
        return settings.method != "filtering" and settings.voting != "hard"

    @property
    def member_weights(self) -> Float:
        """(T,) weights a of the vote."""
        return self.arrays["member_weights"]

    @property
    def bound(self) -> Float | None:
        """What theory promises of the vote; None of a soft vote, of bounded masses, and of members of chance.

        Resampling: the largest share of wrong rows among those of the fit, for the first 1, 2, ... members. Filtering:
        the largest error, given the errors of the three machines on their own rows.
        """
        solution = self.record.solution
        kept = solution.members[: solution.kept]
        errors, factors = np.array([each.error for each in kept]), np.array([each.factor for each in kept])
        classes = self.target_count
        chance = len(errors) == 0 or (errors >= 1.0 - 1.0 / classes).any()
        if chance or self.soft or self.record.settings.masses == BOUNDED:
            return None
        if solution.method != "filtering":
            return training_bound(errors, factors)
        return np.array([filtering_bound(float(errors.max()))]) if len(errors) == 3 else None

    def predictions(self, *, argmax: bool = False, members: int | None = None) -> Votes:
        """The row map that predicts, on scaled rows; by the first members alone where their number is given."""
        votes = Votes(self.members, self.member_weights, argmax)
        return votes if members is None else votes.first(members)

    def checking(self) -> Votes | CalibratedVotes:
        curves, votes = self.curves, self.predictions()
        return votes if curves is None else CalibratedVotes(votes, curves)

    def checked(self, path: str | PathLike[str]) -> Self:
        super().checked(path)
        arrays, terms = self.arrays, len(self.arrays["dual_coef"])
        if arrays["dual_coef"].shape[1] != self.function_count:
            functions = arrays["dual_coef"].shape[1]
            self._refuse(path, f"its members have {functions} functions for {self.target_count} classes")
        ends, positions = arrays["member_ends"], arrays["member_positions"]
        if len(ends) == 0 or (np.diff(ends, prepend=0) < 0).any() or ends[-1] != terms:
            self._refuse(path, "its members do not end at the ends of their functions")
        if len(positions) and (positions.min() < 0 or positions.max() >= len(self.basis)):
            self._refuse(path, "its members have functions of points that are not there")
        weights = arrays["member_weights"]
        if not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.sum() > 0.0):
            self._refuse(path, "the weights of its members are no weights of a vote")
        solution = self.record.solution
        if solution.kept != len(ends) or len(solution.members) < len(ends):
            tried = f"{solution.kept} of {len(solution.members)} that were tried"
            self._refuse(path, f"it has {len(ends)} members, and its record {tried}")
        if not all(0.0 <= each.error <= 1.0 and abs(each.factor) <= _MOST_FACTOR for each in solution.members):
            self._refuse(path, "the errors of its members are no shares, or their factors are out of range")
        return self

    def solution_fields(self) -> Fields:
        solution = self.record.solution
        last, bound = solution.members[solution.kept - 1], self.bound
        fields: Fields = {
            "method": solution.method,
            "learner": solution.learner,
            "members": solution.kept,
            "members_tried": len(solution.members),
            "members_ended": solution.ended,
            "training_error": last.vote_training_error,
        }
        if last.vote_validation_error is not None:
            fields |= {"validation_error": last.vote_validation_error, "validation_rows": solution.validation_rows}
        return fields if bound is None else fields | {"bound": float(bound[-1])}
