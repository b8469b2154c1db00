"""What can be chosen of a pursuit: the words of its parameters, and the rows that are held out of themselves."""

from __future__ import annotations

VARIANTS = ("pre-fitting", "back-fitting", "basic")
LOSSES = ("squared", "logistic")
POOLS = ("shared", "split", "full")
DRAWS = ("uniform", "residual")

AUTO = "auto"
_SHARE, _MOST_SHARE = 0.1, 0.25  # of the rows, held out
_ENOUGH, FEWEST = 50, 20  # held-out rows, at least; with fewer distinct rows than the second none are held out


def share_of(rows: int) -> float | None:
    """The default held-out share of `rows` rows: enough to compare the sizes, with enough rows left; None for none."""
    return None if rows < FEWEST else min(max(_SHARE, _ENOUGH / rows), _MOST_SHARE)
