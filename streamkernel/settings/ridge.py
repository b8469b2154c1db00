"""Settings of kernel ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from streamkernel.errors import ParameterError
from streamkernel.records import NonNegative, SettingsRecord
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.parameter import parameter
from streamkernel.solvers import choose_solver
from streamkernel.table import Table
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option


class RidgeSettingsRecord(SettingsRecord):
    """The options of a fit of ridge regression."""

    alpha: Literal["gcv"] | NonNegative
    solver: str = "auto"


@dataclass(frozen=True)
class RidgeSettings(BasisSettings):
    """A kernel ridge fit."""

    RECORD: ClassVar[type[RidgeSettingsRecord]] = RidgeSettingsRecord
    SAMPLE_PER_FUNCTION: ClassVar[int] = 8  # rows for the preconditioner

    alpha: Unchecked = parameter(
        "gcv",
        "The ridge, which is added to the diagonal: a number, or gcv for the choice by generalised cross-validation.",
        words=("gcv",),
        least=0.0,
    )
    solver: str = parameter(
        "auto",
        "How the coefficients are found: from the sums of one sweep (direct), by conjugate gradients with a sweep for "
        "each iteration (cg), or by the one that costs less (auto).",
        kind=str,
        words=("auto", "direct", "cg"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.solver == "cg" and (self.alpha == "gcv" or float(self.alpha) == 0.0):
            raise ParameterError(
                f"{option('solver', 'cg')} solves for one alpha > 0 and keeps no sums to choose it from, and alpha is "
                f"{self.alpha!r}; give {option('alpha')} a number > 0, or leave the solver out"
            )

    def solver_for(self, table: Table, n: int) -> Literal["direct", "cg"]:
        """The solver; "auto" gives the one with less work by the plan's count, or the direct one where alpha needs it.

        Parameters
        ----------
        n : basis size that is asked for.
        """
        if self.solver == "cg":
            return "cg"
        if self.solver == "direct" or self.alpha == "gcv" or self.needs_regular_system:
            return "direct"
        m, p, d = table.n_rows, table.n_features, table.n_targets
        return choose_solver(m, n, p, d, sample=self.preconditioner_rows(table, n)).solver

    def preconditioner_rows(self, table: Table, n: int) -> int:
        """Number of rows that the preconditioner of conjugate gradients is computed from."""
        return min(self.SAMPLE_PER_FUNCTION * n, table.n_rows)

    @property
    def given_alpha(self) -> float | None:
        """Alpha where it is a number; None where it is chosen from the sums."""
        return None if self.alpha == "gcv" else float(self.alpha)

    @property
    def needs_regular_system(self) -> bool:
        return self.alpha != "gcv" and float(self.alpha) == 0.0
