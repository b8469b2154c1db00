"""Settings of all problems that end at a duality gap, on a basis or with all rows as functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.errors import ParameterError
from streamkernel.records import Count, NonNegative, SettingsRecord
from streamkernel.reductions.margins import Loss, PiecewiseLinear
from streamkernel.selection import Rule, SupportVectors
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.parameter import parameter, parameters_in
from streamkernel.table import Table
from streamkernel.type_aliases import Fields
from streamkernel.wording import option

FULL = "full"
# Rows of the working set of the full machine, where their number is not given.
MOST_WORKING_ROWS = 50_000


class GapSettingsRecord(SettingsRecord):
    """The options of a fit that ends at a duality gap."""

    gap_tol: NonNegative
    max_sweeps: Count


@dataclass(frozen=True)
class GapSettings(BasisSettings):
    """A large margin problem on the whitened features of a basis, solved to a duality gap."""

    RECORD: ClassVar[type[SettingsRecord]] = GapSettingsRecord
    # Whether the square of the constant is in the objective, as those of the other coefficients are.
    penalised_constant: ClassVar[bool] = True

    gap_tol: float = parameter(
        1e-4,
        "The fit ends when the duality gap is at most this share of the objective.",
        least=0.0,
        above=True,
        most=1.0,
    )
    max_sweeps: int = parameter(100, "The largest number of sweeps of one solution.", kind=int, least=1)

    def costs(self, table: Table) -> tuple[float, ...]:
        """The values of C to try, in ascending order."""
        raise NotImplementedError

    @property
    def easier(self) -> str:
        """What takes fewer sweeps, in words for a warning."""
        return f"a smaller {option('C')}"

    @property
    def searches(self) -> bool:
        """Whether values of C beyond those of `costs` may be tried."""
        return False

    @property
    def full(self) -> bool:
        """Whether all rows are functions, and the support vectors are those of the model."""
        return False

    def pairs(self, classes: int) -> bool:
        """Whether a function is fitted for each pair of so many classes."""
        return False

    def losses(self, C: float) -> tuple[Loss, ...]:
        """The losses whose problems share all features and one target, for a cost C: one, or one for each quantile."""
        raise NotImplementedError


@dataclass(frozen=True)
class MachineSettings(GapSettings):
    """A machine on a basis, or on all rows."""

    EXACT: ClassVar[str] = ""  # the loss of the full machine, where there is a choice

    machine: str = parameter(
        "reduced",
        "What the functions are: those of a basis of chosen rows (reduced), or those of all rows, of which the support "
        f"vectors remain (full): exact, with at most as many support vectors as the basis size, {MOST_WORKING_ROWS:,} "
        "where it is not given.",
        kind=str,
        words=("reduced", FULL),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.full:
            self._check_full()

    def _check_full(self) -> None:
        """Refuse settings that mean nothing to the full machine: `ParameterError`."""
        whole = option("machine", FULL)
        if not isinstance(self.losses(1.0)[0], PiecewiseLinear):
            raise ParameterError(
                f"{option('loss')} is {getattr(self, 'loss', '')}, with which all rows are support vectors; "
                f"{whole} has the exact one: give {option('loss', self.EXACT)}, or {option('machine', 'reduced')}"
            )
        stated = parameters_in(self)
        for name in ("rule", "rule_options", "objective", "tol"):
            if getattr(self, name) != stated[name][1]:
                raise ParameterError(
                    f"{option(name)} is of the choice of a basis, and the functions of {whole} are its support "
                    f"vectors; leave it out, or give {option('machine', 'reduced')}"
                )
        if self.searches:
            raise ParameterError(
                f"{option('C')} 'cv' is searched for with a basis; with {whole} give one or several numbers, such as "
                f"those around the C that {option('machine', 'reduced')} finds"
            )
        if self.n_components == 1:
            raise ParameterError(
                f"{option('n_components')} is 1, and the working set of {whole} needs two rows; give at least 2"
            )

    @property
    def full(self) -> bool:
        return self.machine == FULL

    def selection_rule(self, *, has_targets: bool) -> Rule:
        return SupportVectors() if self.full else super().selection_rule(has_targets=has_targets)

    def takes_columns(self, table: Table) -> bool:
        return not self.full and super().takes_columns(table)

    def components(self, table: Table) -> int:
        """As in the base class; of the full machine the rows of its working set."""
        found = super().components(table)
        return min(table.n_rows, MOST_WORKING_ROWS) if self.full and self.n_components is None else found

    def to_config(self) -> Fields:
        config = super().to_config()
        # Runs that an earlier release interrupted have no such field; they go on as if it were absent.
        if not self.full:
            del config["machine"]
        return config
