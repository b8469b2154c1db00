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

    @property
    def terms(self) -> int:
        """T."""
        return len(self.rows)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """As a model keeps it."""
        named = {name: getattr(self, name) for name in _ALWAYS}
        if self.validation is not None:
            named["validation"] = self.validation
        return {f"path_{name}": values for name, values in named.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], fitted_rows: float, validation_rows: float) -> PursuitPath:
        """What `to_arrays` gave."""
        parts = {name: arrays[f"path_{name}"] for name in _ALWAYS}
        return cls(
            **parts,
            validation=arrays.get("path_validation"),
            fitted_rows=fitted_rows,
            validation_rows=validation_rows,
        )


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
