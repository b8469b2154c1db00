"""The weights of the members of a vote with bounded masses, found on rows that the driver holds."""

from __future__ import annotations

import numpy as np

from streamkernel.reductions.boosting import Drawn, Members, bounded_losses, bounded_masses, vote_margins
from streamkernel.solvers.boosting import member_factor
from streamkernel.table import Table

_ROWS, _LEAST_ROWS, _BYTES = 10_000, 1_000, 32 << 20
_LEAST_FACTOR = 1e-4


def sample_rows(table: Table) -> int:
    """Rows on which weights are found: enough for a sampling error of a hundredth, of wide tables 32 MiB."""
    return min(_ROWS, max(_LEAST_ROWS, _BYTES // (table.width * table.dtype.itemsize)))


class MemberWeights:
    """The vote at the rows of a sample, member by member.

    Parameters
    ----------
    sample : rows that are trained on, drawn by their weights.
    classes : number of classes C.
    """

    def __init__(self, sample: Drawn, classes: int) -> None:
        self._sample = sample
        self._share = sample.importance / sample.importance.sum()
        self._votes = np.zeros((len(sample.rows), classes))
        self._classes = classes
        # A member that is right everywhere counts as if half of the lightest row were wrong.
        self._least_error = 0.5 * float(self._share.min())

    def factor(self, members: Members) -> float | None:
        """The weight a in (0, most] of the last member, with which the loss of the vote is least; it joins the vote.

        The loss ``mean phi(margin(V + a v))``, with v the confidences of the member for its classes, is convex in a:
        phi is convex and decreasing, and the margin is concave in a. It is at most twice AdaBoost's weight of an error
        as large, which is where the loss of a member of confidence 1 alone is least: rows of little weight could
        else ask for steps without end. None for a member that is no better than chance.
        """
        codes = members.part(len(members) - 1, len(members)).codes(self._sample.X)
        own = members.votes(codes, np.ones(1))

        def loss(a: float) -> float:
            losses = bounded_losses(vote_margins(self._votes + a * own, self._sample.labels))
            # A product of BLAS would have bits that depend on its threads.
            return float((self._share * losses).sum())

        mass = self._share * bounded_masses(vote_margins(self._votes, self._sample.labels))
        error = float(mass[own.argmax(axis=1) != self._sample.labels].sum() / mass.sum())
        most = 2.0 * member_factor(max(error, self._least_error), self._classes)
        if most <= _LEAST_FACTOR or loss(_LEAST_FACTOR) >= loss(0.0):
            return None
        from scipy.optimize import minimize_scalar  # a tenth of the start of any command

        found = minimize_scalar(loss, bounds=(0.0, most), method="bounded", options={"xatol": 1e-6})
        factor = max(float(found.x), _LEAST_FACTOR)
        self._votes += factor * own
        return factor
