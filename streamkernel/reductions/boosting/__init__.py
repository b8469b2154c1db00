"""Members of boosting: the classes that they give, their votes, and the rows that the next one is fitted to."""

from streamkernel.reductions.boosting.found import (
    MARGIN_BINS,
    Boosted,
    Drawn,
    DrawnMember,
    margin_edges,
    mass_unit,
)
from streamkernel.reductions.boosting.members import Members, bounded_losses, bounded_masses, code_dtype, vote_margins
from streamkernel.reductions.boosting.step import BoostingStep
from streamkernel.reductions.boosting.votes import CalibratedVotes, Votes

__all__ = [
    "MARGIN_BINS",
    "Boosted",
    "BoostingStep",
    "CalibratedVotes",
    "Drawn",
    "DrawnMember",
    "Members",
    "Votes",
    "bounded_losses",
    "bounded_masses",
    "code_dtype",
    "margin_edges",
    "mass_unit",
    "vote_margins",
]
