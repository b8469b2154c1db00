"""The staleness of a model's basis: does it span new rows as well as the rows it was chosen from?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from streamkernel.errors import warn_user
from streamkernel.wording import option

if TYPE_CHECKING:
    from streamkernel.models.updatable import Sums
    from streamkernel.records import UpdatableRecord

STALE = 2.0
# A basis that leaves a smaller share than this of the new rows is never stale.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Staleness:
    """Shares of the trace of K that a basis leaves: ``tr(K - K~) / tr K``. It is the mean residual where k(x, x) is 1.

    Attributes
    ----------
    of_fit : share for the rows that the basis was chosen from.
    of_new : share for the rows folded in last; None where none were.
    now : whether `of_new` is larger than `of_fit` times the factor of the update.
    before : whether it was so at an earlier update, and the basis has not grown since.
    """

    of_fit: float
    of_new: float | None = None
    now: bool = False
    before: bool = False

    @classmethod
    def known(cls, record: UpdatableRecord) -> Staleness:
        """The staleness that a model's record tells."""
        updates = record.updates
        if updates is None:
            return cls(record.certificate.relative_residual_trace)
        return cls(updates.residual_of_fit, before=updates.stale)

    @property
    def stale(self) -> bool:
        """Whether the basis is stale, now or before."""
        return self.now or self.before

    def with_rows(self, fresh: Sums | None, factor: float) -> Staleness:
        """The staleness after new rows with these sums; unchanged for None."""
        if fresh is None:
            return self
        left = fresh.residual_trace / fresh.trace if fresh.trace else 0.0
        return replace(self, of_new=left, now=left > factor * self.of_fit and left > _NEGLIGIBLE)

    def warn(self, factor: float, grown: int, left: float) -> None:
        """Warn the user where the basis is stale now.

        Parameters
        ----------
        grown : number of functions that were added for this reason.
        left : share of the trace of all rows that the basis now leaves.
        """
        if not self.now or self.of_new is None:
            return
        if grown:
            remedy = f"{grown} functions were added to it, with which it leaves {left:.3g} of all rows"
        else:
            remedy = f"let it grow (give {option('grow')} and a table with all rows), or fit again"
        warn_user(
            f"the basis is stale: it leaves {self.of_new:.3g} of the new rows' trace, more than {factor:g} times the "
            f"{self.of_fit:.3g} that it left of the rows of the fit; {remedy}"
        )
