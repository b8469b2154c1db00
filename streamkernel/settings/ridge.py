"""Settings of kernel ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from streamkernel.errors import ParameterError
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.checks import checked_choice, checked_number
from streamkernel.solvers import choose_solver
from streamkernel.table import Table
from streamkernel.wording import option

__all__ = ["RidgeSettings"]


@dataclass(frozen=True)
class RidgeSettings(BasisSettings):
    """Options of a kernel ridge fit: those of the basis, and

    Parameters
    ----------
    alpha : "gcv" or a number >= 0, added to the diagonal.
    solver : "direct" (the sums, decomposed), "cg" (`FalkonSystem`, for one alpha), or "auto": see `solver_for`.
    """

    SOLVERS: ClassVar[tuple[str, ...]] = ("auto", "direct", "cg")
    SAMPLE_PER_FUNCTION: ClassVar[int] = 8  # rows for the preconditioner

    alpha: Any = "gcv"
    solver: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha != "gcv":
            if isinstance(self.alpha, str):
                raise ParameterError(f"alpha must be 'gcv' or a number >= 0, not {self.alpha!r}")
            checked_number("alpha", self.alpha, least=0.0)
        checked_choice("solver", self.solver, self.SOLVERS)
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

    def to_config(self) -> dict[str, Any]:
        alpha = self.alpha if self.alpha == "gcv" else float(self.alpha)
        return super().to_config() | {"alpha": alpha, "solver": self.solver}
