"""The path of a pursuit: every picked term, its residual, and its error on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass

from streamkernel.pursuit.stages import Stages
from streamkernel.selection import Selection
from streamkernel.type_aliases import AnyArray, Fields, Float, Int

_ALWAYS = ("rows", "rss", "gains", "weakness", "sizes", "losses", "wrong")
_SOMETIMES = ("validation", "errors", "outside")


@dataclass(frozen=True)
class PursuitPath:
    """The record of all picked terms, including those beyond the best size.

    Attributes
    ----------
    rows : (T,) row number of each term's function; basic may pick a function twice.
    rss : (T + 1, d) residual sum of squares of each target after t terms, over the rows of the fit.
    gains : (T,) decrease of the sum of squares of all targets by each pick, in units of their spread.
    weakness : (T,) realised weakness: root of the pick's score over the best known score; 1 where all competed.
    validation : (T + 1, d) as `rss`, over the held-out rows; None where there are none.
    fitted_rows, validation_rows : sums of the weights of both.
    sizes : (s,) number of terms of the model that each sweep began with.
    losses, wrong : (s, 2) sum of the logistic loss and number of wrong classes of these models, on the rows of the fit
        and on the held-out rows; 0 where there are none.
    errors : (S + 1, 2) number of rows, fitted and held out, with a wrong class or an error above gamma after t terms;
        None where they were not counted. For all sizes of the path; with the logistic loss, for the sizes of the model.
    outside : (S + 1,) the same for fitted rows that are not functions of these terms, each row counted once.
    counted : number of fitted rows, each counted once.
    """

    rows: Int
    rss: Float
    gains: Float
    weakness: Float
    validation: Float | None
    fitted_rows: float
    validation_rows: float
    sizes: Int
    losses: Float
    wrong: Float
    errors: Float | None = None
    outside: Int | None = None
    counted: int = 0

    @property
    def terms(self) -> int:
        """Number of terms T."""
        return len(self.rows)

    def error_rate(self, terms: int, *, held_out: bool) -> float | None:
        """Share of wrong rows, by weight, after `terms` terms; None where they were not counted."""
        rows = self.validation_rows if held_out else self.fitted_rows
        if self.errors is None or not rows > 0.0:
            return None
        return float(self.errors[terms, int(held_out)] / rows)

    def to_arrays(self) -> dict[str, AnyArray]:
        """The path as arrays of a model."""
        names = [name for name in (*_ALWAYS, *_SOMETIMES) if getattr(self, name) is not None]
        return {f"path_{name}": getattr(self, name) for name in names}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, AnyArray], fitted_rows: float, validation_rows: float, counted: int = 0
    ) -> PursuitPath:
        """Read the result of `to_arrays`."""
        parts: Fields = {name: arrays[f"path_{name}"] for name in _ALWAYS}
        parts |= {name: arrays.get(f"path_{name}") for name in _SOMETIMES}
        return cls(**parts, fitted_rows=fitted_rows, validation_rows=validation_rows, counted=counted)


@dataclass(frozen=True, kw_only=True)
class PursuitSelection(Selection):
    """The chosen functions, with their coefficients and path.

    Attributes
    ----------
    stages : the model, step by step.
    path : path of the pursuit.
    offset : (d,) centre subtracted from the targets before the fit.
    trace : sum of k(x, x) over the rows of the fit.
    squares : (n,) sums of squares of the whitened features over these rows; None if
        the kernel is not positive definite.
    ridge : ridge on the functions, chosen by held-out rows; 0 for least squares.
    """

    stages: Stages
    path: PursuitPath
    offset: Float
    trace: float
    squares: Float | None
    ridge: float = 0.0
