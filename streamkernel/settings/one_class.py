"""Settings of one-class machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.records import SettingsRecord
from streamkernel.reductions.margins import Loss, OneClass
from streamkernel.settings.gap import GapSettingsRecord, MachineSettings
from streamkernel.settings.parameter import parameter
from streamkernel.table import Table
from streamkernel.wording import option


class OneClassSettingsRecord(GapSettingsRecord):
    """The options of a fit of one class."""

    nu: float
    machine: str = "reduced"


@dataclass(frozen=True)
class OneClassSettings(MachineSettings):
    """One class: rows without targets, of which a share nu is outside the region that the fit finds."""

    RECORD: ClassVar[type[SettingsRecord]] = OneClassSettingsRecord
    TAKES_MATRIX: ClassVar[bool] = True
    # There are no targets to explain, and the constant is the threshold.
    UNUSED: ClassVar[tuple[str, ...]] = ("objective", "fit_intercept")
    penalised_constant: ClassVar[bool] = False

    nu: float = parameter(
        0.1,
        "The share of the rows, by weight, that are outside at most; at least this share are support vectors.",
        least=0.0,
        above=True,
        most=1.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_without_targets()

    @property
    def easier(self) -> str:
        return f"a larger {option('nu')}"

    def costs(self, table: Table) -> tuple[float, ...]:
        """``C = 1 / (nu sum w)``, with which the dual variables sum to 1, and each is at most w C.

        Where nu stands for less than the row of least weight, no row is outside, and its weight is the sum of nu: no
        variable is at its bound w C >= 1, and a larger C changes nothing but takes more sweeps.
        """
        sums = table.weight_sums
        least = 1.0 if sums is None else float(sums.least.min())
        return (1.0 / max(self.nu * table.weight, least),)

    def losses(self, C: float) -> tuple[Loss, ...]:
        return (OneClass(C),)
