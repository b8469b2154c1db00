"""Settings of kernel ridge regression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from streamkernel.errors import ParameterError
from streamkernel.kernels import Kernel, StationaryKernel
from streamkernel.records import NonNegative, SettingsRecord
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.parameter import left_to_the_fit, parameter
from streamkernel.solvers import choose_solver, rows_for_search
from streamkernel.table import Folds, Table
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import option

# Rows from which the fit searches for a metric and a kernel, and chooses alpha by folds, if it is asked for nothing
# else. Of fewer rows too few can be held out to choose by: on boston (404 rows) each choice makes the error larger.
LEAST_SEARCHED = 2_000
# Features up to which it searches for a metric: the search holds several p x p matrices, and decomposes one each round.
MOST_FEATURES = 1_000

# Folds: of eight parts of the rows so many are held out, one at a time.
BUCKETS = 8
LEAST_FOLDED = 60  # rows below which none are held out
MOST_BY_FOUR = LEAST_SEARCHED  # rows up to which four parts are, above that mostly two
MOST_ROWS_BY_TWO = 100_000  # rows above which one is: of so many an eighth is enough to choose by
LEAST_SAMPLED = 1_000  # rows from which a search for alpha begins, where there are as many
MOST_BY_TWO = 4_000  # functions above which one is


_SEARCHED = f"from {LEAST_SEARCHED:,} rows on"


class RidgeSettingsRecord(SettingsRecord):
    """The options of a fit of ridge regression."""

    alpha: Literal["gcv", "cv"] | NonNegative
    solver: str = "auto"


@dataclass(frozen=True)
class RidgeSettings(BasisSettings):
    """A kernel ridge fit."""

    RECORD: ClassVar[type[RidgeSettingsRecord]] = RidgeSettingsRecord
    SAMPLE_PER_FUNCTION: ClassVar[int] = 8  # rows for the preconditioner

    kernel: str | Kernel | Fields | None = left_to_the_fit(BasisSettings, "kernel", f"auto {_SEARCHED}, gaussian below")
    metric: Unchecked = left_to_the_fit(
        BasisSettings, "metric", f"learned {_SEARCHED} and up to {MOST_FEATURES:,} features, else none"
    )
    alpha: Unchecked = parameter(
        None,
        "The ridge, which is added to the diagonal: a number, cv for the least error on held-out folds of the rows, or "
        "gcv for the choice by generalised cross-validation.",
        words=("gcv", "cv"),
        least=0.0,
        optional=True,
        default_words=f"cv {_SEARCHED}, gcv below",
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

    def for_table(self, table: Table) -> Self:
        """These settings, with kernel, metric and alpha chosen for a table where they are None.

        With `LEAST_SEARCHED` rows: a search among kernels and, up to `MOST_FEATURES` features, for a metric, unless
        something that is given names the kernel or its lengthscale; and alpha by folds. With fewer: the Gaussian
        kernel, no metric, and alpha by GCV. Of any table, a rank asks for a metric and conjugate gradients for alpha by
        folds. The choice does not depend on the basis size: where that is too large, a smaller one is planned alike.
        """
        if None not in (self.kernel, self.alpha) and self.metric is not None:
            return self
        enough = table.n_rows >= LEAST_SEARCHED and table.n_targets > 0
        free = isinstance(self.lengthscale, str) and self.lengthscale == "median" and self.gamma is None
        kernel: str | Kernel | Fields | None = self.kernel
        if kernel is None:
            plain = self.degree is None and self.coef0 is None and not self.kernel_params
            kernel = "auto" if enough and free and plain and self.given_metric is None else "gaussian"
        metric = self.metric
        if metric is None:
            narrow = table.n_features <= MOST_FEATURES and isinstance(kernel, str)
            learned = enough and free and narrow and isinstance(self.kernel_template, StationaryKernel)
            metric = "learned" if learned or self.metric_rank is not None else "none"
        alpha = self.alpha
        if alpha is None:
            alpha = "cv" if self.solver == "cg" or enough else "gcv"
        return replace(self, kernel=kernel, metric=metric, alpha=alpha)

    def solver_for(self, table: Table, n: int) -> Literal["direct", "cg"]:
        """The solver; "auto" gives the one with less work by the plan's count, or the direct one where alpha needs it.

        Parameters
        ----------
        n : basis size that is asked for.
        """
        if self.solver == "cg":
            return "cg"
        # With fewer functions more folds cost little, and choose better than the one of conjugate gradients.
        by_folds = self.alpha == "cv" and table.n_rows >= LEAST_FOLDED and n > MOST_BY_TWO
        if self.solver == "direct" or not (by_folds or self.given_alpha):
            return "direct"
        m, p, d = table.n_rows, table.n_features, table.n_targets
        return choose_solver(m, n, p, d, sample=self.preconditioner_rows(table, n), search=by_folds).solver

    def preconditioner_rows(self, table: Table, n: int) -> int:
        """Number of rows that the preconditioner of conjugate gradients is computed from."""
        if self.alpha == "cv":
            rows = rows_for_search(table.n_rows, n, table.n_features, table.n_targets)
            return min(max(rows, LEAST_SAMPLED), table.n_rows)
        return min(self.SAMPLE_PER_FUNCTION * n, table.n_rows)

    @property
    def given_alpha(self) -> float | None:
        """Alpha where it is a number; None where it is chosen from the sums."""
        return None if self.alpha is None or isinstance(self.alpha, str) else float(self.alpha)

    @property
    def needs_regular_system(self) -> bool:
        return self.given_alpha == 0.0

    def folds(self, rows: int, n: int, solver: Literal["direct", "cg"] = "direct") -> Folds | None:
        """Folds of so many rows whose errors choose alpha; None where alpha is chosen otherwise.

        Few rows need more validation folds for the same error, and their sums cost little. Of many rows one fold is
        enough: each further one costs time in the sweep, whose blocks are cut by fold, and a search of its own. The
        sums of a large basis are large: with one validation fold they take the memory of a fit without folds
        (`FoldEquations`). Conjugate gradients solve once for each fold; they have one.
        """
        if self.alpha != "cv" or rows < LEAST_FOLDED:
            return None
        one = solver == "cg" or n > MOST_BY_TWO or rows > MOST_ROWS_BY_TWO
        return Folds(1 if one else 4 if rows <= MOST_BY_FOUR else 2, BUCKETS, self.seed)
