"""Settings of kernel ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from streamkernel.errors import ParameterError
from streamkernel.records import NonNegative, SettingsRecord
from streamkernel.reductions import DrawnRows
from streamkernel.settings._searched import LEAST_SEARCHED, SEARCHED, SearchedSettings
from streamkernel.settings.parameter import parameter
from streamkernel.solvers import choose_solver, rows_for_search, uniform_draw
from streamkernel.table import Folds, Table
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import option

# Folds: of eight parts of the rows so many are held out, one at a time.
BUCKETS = 8
LEAST_FOLDED = 60  # rows below which none are held out
MOST_BY_FOUR = LEAST_SEARCHED  # rows up to which four parts are, above that mostly two
MOST_ROWS_BY_TWO = 100_000  # rows above which one is: of so many an eighth is enough to choose by
LEAST_SAMPLED = 1_000  # rows from which a search for alpha begins, where there are as many
MOST_BY_TWO = 4_000  # functions above which one is


class RidgeSettingsRecord(SettingsRecord):
    """The options of a fit of ridge regression."""

    alpha: Literal["gcv", "cv"] | NonNegative
    solver: str = "auto"


@dataclass(frozen=True)
class RidgeSettings(SearchedSettings):
    """A kernel ridge fit."""

    RECORD: ClassVar[type[RidgeSettingsRecord]] = RidgeSettingsRecord
    SAMPLE_PER_FUNCTION: ClassVar[int] = 8  # rows for the preconditioner
    TAKES_MATRIX: ClassVar[bool] = True

    alpha: Unchecked = parameter(
        None,
        "The ridge, which is added to the diagonal: a number, cv for the least error on held-out folds of the rows, or "
        "gcv for the choice by generalised cross-validation.",
        words=("gcv", "cv"),
        least=0.0,
        optional=True,
        default_words=f"cv {SEARCHED}, gcv below",
    )
    solver: str = parameter(
        "auto",
        "How the coefficients are found: from the sums of one sweep (direct), by conjugate gradients with a sweep for "
        "each iteration (cg; alpha is cv or a number), or by the one that costs less (auto).",
        kind=str,
        words=("auto", "direct", "cg"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.solver == "cg" and self.alpha not in (None, "cv") and not self.given_alpha:
            raise ParameterError(
                f"{option('solver', 'cg')} solves for one alpha > 0 and keeps no sums to choose it from, and alpha is "
                f"{self.alpha!r}; give {option('alpha')} 'cv' or a number > 0, or leave the solver out"
            )

    def left_to(self, table: Table) -> Fields:
        """As in the base class, and alpha: by folds with `LEAST_SEARCHED` rows or with conjugate gradients, else by
        GCV.
        """
        found = super().left_to(table)
        if self.alpha is None:
            found["alpha"] = "cv" if self.solver == "cg" or self.enough(table) else "gcv"
        return found

    def solver_for(self, table: Table, n: int) -> Literal["direct", "cg"]:
        """The solver; "auto" gives the one with less work by the plan's count, or the direct one where alpha needs it.

        Parameters
        ----------
        n : basis size that is asked for.
        """
        if self.solver == "cg":
            return "cg"
        # With fewer functions more folds cost little, and choose better than the one of conjugate gradients.
        by_folds = self.alpha == "cv" and table.counted >= LEAST_FOLDED and n > MOST_BY_TWO
        if self.solver == "direct" or not (by_folds or self.given_alpha):
            return "direct"
        # Rows without targets are refused by the fit, which says how to give them.
        m, p, d = table.counted, table.stored_width, max(table.n_targets, 1)
        return choose_solver(m, n, p, d, sample=self.preconditioner_rows(table, n), search=by_folds).solver

    def preconditioner_rows(self, table: Table, n: int) -> int:
        """Number of rows that the preconditioner of conjugate gradients is computed from."""
        if self.alpha == "cv":
            rows = rows_for_search(table.counted, n, table.stored_width, table.n_targets)
            return min(max(rows, LEAST_SAMPLED), table.counted)
        return min(self.SAMPLE_PER_FUNCTION * n, table.counted)

    def preconditioner_draw(self, table: Table, n: int) -> DrawnRows:
        """The rows that the preconditioner of conjugate gradients is computed from."""
        return uniform_draw(table, self.preconditioner_rows(table, n), self.seed)

    @property
    def given_alpha(self) -> float | None:
        """Alpha where it is a number; None where it is chosen from the sums."""
        return None if self.alpha is None or isinstance(self.alpha, str) else float(self.alpha)

    @property
    def needs_regular_system(self) -> bool:
        return self.given_alpha == 0.0

    def folds(self, rows: int, n: int, solver: Literal["direct", "cg"] = "direct") -> Folds | None:
        """Folds of so many rows of weight > 0 whose errors choose alpha; None where alpha is chosen otherwise.

        Few rows need more validation folds for the same error, and their sums cost little. Of many rows one fold is
        enough: each further one costs time in the sweep, whose blocks are cut by fold, and a search of its own. The
        sums of a large basis are large: with one validation fold they take the memory of a fit without folds
        (`FoldEquations`). Conjugate gradients solve once for each fold; they have one.
        """
        if self.alpha != "cv" or rows < LEAST_FOLDED:
            return None
        one = solver == "cg" or n > MOST_BY_TWO or rows > MOST_ROWS_BY_TWO
        return Folds(1 if one else 4 if rows <= MOST_BY_FOUR else 2, BUCKETS, self.seed)
