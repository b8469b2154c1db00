"""Whether the basis of a model spans new rows as well as those that it was chosen from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from streamkernel.errors import warn_user
from streamkernel.estimators.updatable import Sums

__all__ = ["STALE", "Staleness"]

STALE = 2.0
# A basis that leaves less than this of the rows is not stale, whatever it left of those that it was chosen from.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Staleness:
    """Shares of the trace of K that the basis leaves: ``tr(K - K~) / tr K``, the mean residual where k(x, x) = 1.

    Attributes
    ----------
    of_fit : of the rows that the basis was chosen from.
    of_new : of the rows folded in last; None where none were.
    now : whether the latter exceeds the former by the factor asked for.
    before : whether it did at an earlier update, and the basis has not grown since.
    """

    of_fit: float
    of_new: float | None = None
    now: bool = False
    before: bool = False

    @classmethod
    def known(cls, config: dict[str, Any]) -> Staleness:
        """What a model's configuration says."""
        updates = config.get("updates") or {}
        of_fit = updates.get("residual_of_fit", config["certificate"]["relative_residual_trace"])
        return cls(float(of_fit), before=bool(updates.get("stale", False)))

    @property
    def stale(self) -> bool:
        """Now or before."""
        return self.now or self.before

    def with_rows(self, fresh: Sums | None, factor: float) -> Staleness:
        """What the sums of new rows say."""
        if fresh is None:
            return self
        left = fresh.residual_trace / fresh.trace if fresh.trace else 0.0
        return replace(self, of_new=left, now=left > factor * self.of_fit and left > _NEGLIGIBLE)

    def warn(self, factor: float, grown: int, left: float) -> None:
        """Tell the user.

        Parameters
        ----------
        grown : functions that the basis has more for it.
        left : share of the trace of all rows that it leaves.
        """
        if not self.now or self.of_new is None:
            return
        if grown:
            remedy = f"{grown} functions were added to it, with which it leaves {left:.3g} of all rows"
        else:
            remedy = "let it grow (--grow N, on a table with all rows), or fit again"
        warn_user(
            f"the basis is stale: it leaves {self.of_new:.3g} of the new rows' trace, more than {factor:g} times the "
            f"{self.of_fit:.3g} that it left of the rows of the fit; {remedy}"
        )
