"""Members of boosting: the classes that they give, their votes, and the rows that the next one is fitted to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.reductions.boosting.found import (
        MARGIN_BINS,
        Boosted,
        Drawn,
        DrawnMember,
        margin_edges,
        mass_unit,
    )
    from streamkernel.reductions.boosting.members import (
        Members,
        bounded_losses,
        bounded_masses,
        code_dtype,
        vote_margins,
    )
    from streamkernel.reductions.boosting.step import BoostingStep
    from streamkernel.reductions.boosting.votes import CalibratedVotes, Votes
else:
    __getattr__ = on_demand(
        __name__,
        {
            "found": "MARGIN_BINS Boosted Drawn DrawnMember margin_edges mass_unit",
            "members": "Members bounded_losses bounded_masses code_dtype vote_margins",
            "step": "BoostingStep",
            "votes": "CalibratedVotes Votes",
        },
    )

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
