"""What the members of a vote were, how its error falls with them, and the margins of its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.models.boosting import BoostingModel, MemberRecord
from streamkernel.reductions.boosting import margin_edges
from streamkernel.report.facts.fit import Absent
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class VoteErrors:
    """Shares of wrong rows of the votes of the first 1, 2, ... members, and of each member.

    Attributes
    ----------
    training, held_out : (t,) of the votes; NaN where not measured; `held_out` is None without held-out rows.
    members : (t,) of each member alone, on held-out rows where there are any, else on those of the fit.
    bound : (t,) what the errors of the members promise for `training`; None where they promise nothing.
    kept : number of members of the vote.
    rows : number of held-out rows.
    """

    training: Float
    held_out: Float | None
    members: Float
    bound: Float | None
    kept: int
    rows: int


@dataclass(frozen=True)
class MemberWeights:
    """Weights of the members that were tried, 0 for those that are not in the vote, and their errors under their own
    weights of the rows.
    """

    weights: Float
    errors: Float
    rows: tuple[int, ...]
    classes: int


@dataclass(frozen=True)
class Margins:
    """Shares (2, b) of the rows of the fit and of held-out ones, by the margin; `held_out` is whether there are any."""

    edges: Float
    shares: Float
    held_out: bool


def _column(members: tuple[MemberRecord, ...], name: str) -> Float:
    values = [getattr(each, name) for each in members]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def vote_errors(model: BoostingModel) -> VoteErrors | Absent:
    """Errors against the number of members."""
    solution = model.record.solution
    if solution.method == "filtering":
        return Absent("the three machines of filtering vote together, and two of them have no vote of their own")
    members = solution.members
    held_out = _column(members, "vote_validation_error")
    held = bool(np.isfinite(held_out).any())
    return VoteErrors(
        training=_column(members, "vote_training_error"),
        held_out=held_out if held else None,
        members=_column(members, "validation_error" if held else "training_error"),
        bound=model.bound,
        kept=solution.kept,
        rows=solution.validation_rows,
    )


def member_weights(model: BoostingModel) -> MemberWeights:
    """Weights and errors of the members."""
    members, kept = model.record.solution.members, model.record.solution.kept
    weights = np.zeros(len(members))
    weights[:kept] = model.member_weights
    return MemberWeights(weights, _column(members, "error"), tuple(each.rows for each in members), model.target_count)


def margins(model: BoostingModel) -> Margins | Absent:
    """Histograms of the margins."""
    shares = np.asarray(model.arrays["margin_shares"], dtype=np.float64)
    edges = margin_edges()
    if shares.shape != (2, len(edges) - 1):
        return Absent("the model keeps no margins")
    return Margins(edges, shares, bool(shares[1].any()))
