"""Settings of linear programming machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.errors import ParameterError
from streamkernel.records import Count, NonNegative, SettingsRecord
from streamkernel.reductions.margins import EpsilonInsensitive, Hinge, Loss
from streamkernel.selection import Rule, SupportVectors
from streamkernel.settings.classes import ClassifierSettings, ClassifierSettingsRecord, calibration_of_classes
from streamkernel.settings.margins import CalibratedSettings, MarginSettings, MarginSettingsRecord
from streamkernel.settings.parameter import parameter, parameters_in
from streamkernel.table import Table
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

MOST_FUNCTIONS, MOST_ROWS = 500, 50_000  # of the linear program of one function, where they are not given


class LinearSettingsRecord(MarginSettingsRecord):
    """The options of a fit of a linear programming machine."""

    working_rows: Count
    candidates: Count | None


@dataclass(frozen=True)
class LinearSettings(MarginSettings):
    """A machine with the smallest sum of absolute coefficients, whose functions are those of all rows."""

    RECORD: ClassVar[type[SettingsRecord]] = LinearSettingsRecord
    # Nothing chooses a basis before the solution.
    UNUSED: ClassVar[tuple[str, ...]] = ("rule", "rule_options", "objective", "tol")
    penalised_constant: ClassVar[bool] = False

    n_components: int | None = parameter(
        None,
        "The number of basis functions.",
        "basis",
        kind=int,
        least=1,
        optional=True,
        flag="basis",
        default_words=f"as many as the solution has, at most {MOST_FUNCTIONS} of each function",
    )
    fit_intercept: bool = parameter(
        True, "Whether the model has a constant, which is not penalised.", "rows", kind=bool, flag="intercept"
    )
    C: Unchecked = parameter(
        None,
        "The cost of a unit of loss, in deviations of the target: a number, or several (0.1,1,10), of which the one "
        "with the least error on held-out rows is taken.",
        kind=list,
        optional=True,
        default_words="1",
    )
    gap_tol: float = parameter(
        1e-3,
        "The fit ends when the gap is at most this share of the objective.",
        least=0.0,
        above=True,
        most=1.0,
    )
    working_rows: int = parameter(
        MOST_ROWS,
        "The largest number of rows in memory for each function: those with a dual variable, which are inside the "
        "margin.",
        kind=int,
        least=2,
    )
    candidates: int | None = parameter(
        None,
        "The number of rows that are drawn as candidates for functions; the bound is then that of their program.",
        kind=int,
        least=1,
        optional=True,
        default_words="all rows",
    )

    def __post_init__(self) -> None:
        if isinstance(self.C, str):
            raise ParameterError(
                f"{option('C')} must be a finite number > 0 or several of them, not {self.C!r:.80}", value=self.C
            )
        super().__post_init__()
        stated = parameters_in(self)
        for name in self.UNUSED:
            if getattr(self, name) != stated[name][1]:
                raise ParameterError(
                    f"{option(name)} is of the choice of a basis, and a linear program chooses its functions itself; "
                    "leave it out"
                )

    @property
    def full(self) -> bool:
        return True

    @property
    def needs_positive_definite(self) -> bool:
        return False

    def selection_rule(self, *, has_targets: bool) -> Rule:
        return SupportVectors()

    def takes_columns(self, table: Table) -> bool:
        return False

    def components(self, table: Table) -> int:
        """As in the base class; without a number the most columns of a program."""
        found = super().components(table)
        return min(table.n_rows, MOST_FUNCTIONS) if self.n_components is None else found


class LinearClassifierSettingsRecord(LinearSettingsRecord, ClassifierSettingsRecord):
    """The options of a fit of a linear programming classifier."""

    calibration: str | None


@dataclass(frozen=True)
class LinearClassifierSettings(LinearSettings, CalibratedSettings, ClassifierSettings):
    """A linear programming classifier, with the hinge loss."""

    RECORD: ClassVar[type[SettingsRecord]] = LinearClassifierSettingsRecord

    calibration: str | None = calibration_of_classes()

    def losses(self, C: float) -> tuple[Loss, ...]:
        return (Hinge(C),)


class LinearRegressorSettingsRecord(LinearSettingsRecord):
    """The options of a fit of a linear programming regression."""

    epsilon: NonNegative


@dataclass(frozen=True)
class LinearRegressorSettings(LinearSettings):
    """A linear programming regression, with the epsilon-insensitive loss."""

    RECORD: ClassVar[type[SettingsRecord]] = LinearRegressorSettingsRecord

    epsilon: float = parameter(
        0.1, "Half the width of the tube in which errors cost nothing, in deviations of the target.", least=0.0
    )

    def losses(self, C: float) -> tuple[Loss, ...]:
        return (EpsilonInsensitive(C, self.epsilon),)
