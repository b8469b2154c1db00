"""How a pursuit went: every term that was picked, what it left, and what the held-out rows made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.pursuit.stages import Stages
from streamkernel.selection import Selection

__all__ = ["PursuitPath", "PursuitSelection"]

Float = NDArray[np.float64]

_ALWAYS = ("rows", "rss", "gains", "weakness", "sizes", "losses", "wrong")
_SOMETIMES = ("validation", "errors", "outside")


@dataclass(frozen=True)
class PursuitPath:
    """All terms that were picked, those beyond the best size too.

    Attributes
    ----------
    rows : (T,) row number of each term's function; basic may have one twice.
    rss : (T + 1, d) what t terms leave of each target's square over the rows of the fit.
    gains : (T,) by how much each pick lowered the sum of squares of all targets, in units of their spread.
    weakness : (T,) realised: root of the pick's score over the best then known; 1 where all candidates competed.
    validation : (T + 1, d) as `rss`, over the held-out rows; None where there are none.
    fitted_rows, validation_rows : sums of the weights of both.
    sizes : (s,) terms of the model that each sweep began with.
    losses, wrong : (s, 2) of these, on the rows of the fit and on those held out: sums of the logistic loss, and how
        many classes were told wrongly; 0 where there are none.
    errors : (S + 1, 2) of how many rows, fitted and held out, t terms tell the class wrongly, or miss the target by
        more than gamma; None where neither was asked. Of all sizes of the path, with the logistic loss of the model's.
    outside : (S + 1,) the same of the rows fitted that are none of these terms' functions, each row counted once.
    counted : rows fitted, each counted once.
    """

    rows: NDArray[np.int64]
    rss: Float
    gains: Float
    weakness: Float
    validation: Float | None
    fitted_rows: float
    validation_rows: float
    sizes: NDArray[np.int64]
    losses: Float
    wrong: Float
    errors: Float | None = None
    outside: NDArray[np.int64] | None = None
    counted: int = 0

    @property
    def terms(self) -> int:
        """T."""
        return len(self.rows)

    def error_rate(self, terms: int, *, held_out: bool) -> float | None:
        """Share of the rows that so many terms get wrong, by weight; None where they were not counted."""
        rows = self.validation_rows if held_out else self.fitted_rows
        if self.errors is None or not rows > 0.0:
            return None
        return float(self.errors[terms, int(held_out)] / rows)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """As a model keeps it."""
        names = [name for name in (*_ALWAYS, *_SOMETIMES) if getattr(self, name) is not None]
        return {f"path_{name}": getattr(self, name) for name in names}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, NDArray[Any]], fitted_rows: float, validation_rows: float, counted: int = 0
    ) -> PursuitPath:
        """What `to_arrays` gave."""
        parts: dict[str, Any] = {name: arrays[f"path_{name}"] for name in _ALWAYS}
        parts |= {name: arrays.get(f"path_{name}") for name in _SOMETIMES}
        return cls(**parts, fitted_rows=fitted_rows, validation_rows=validation_rows, counted=counted)


@dataclass(frozen=True, kw_only=True)
class PursuitSelection(Selection):
    """The chosen functions with the model they were chosen for.

    Attributes
    ----------
    stages : the model, step by step.
    path : how it went.
    offset : (d,) taken off the targets before anything was fitted.
    trace : sum of k(x, x) over the rows of the fit.
    squares : (n,) of the columns of the whitened features over these rows; None where the kernel has none.
    """

    stages: Stages
    path: PursuitPath
    offset: Float
    trace: float
    squares: Float | None
