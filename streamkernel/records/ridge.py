"""The fields of a kernel ridge model."""

from __future__ import annotations

from typing import Literal

from streamkernel.records.basis import SettingsRecord
from streamkernel.records.json_types import Count, NonNegative
from streamkernel.records.model import CountedTotals, UpdatableRecord
from streamkernel.records.record import Record


class RidgeSettingsRecord(SettingsRecord):
    """The options of a fit of ridge regression."""

    alpha: Literal["gcv"] | NonNegative
    solver: str = "auto"


class RidgeTotals(CountedTotals):
    """Sums over the rows of the fit."""

    weight: float


class RidgeSolutionRecord(Record):
    """The solution at alpha; the last four fields are those of conjugate gradients."""

    gcv: float | None
    effective_df: float | None
    training_rmse: tuple[float, ...]
    solver: Literal["direct", "cg"] = "direct"
    iterations: Count | None = None
    ended: str | None = None
    relative_residual: tuple[float, ...] = ()
    excess: tuple[float, ...] = ()


class RidgeRecord(UpdatableRecord):
    """The fields of a kernel ridge model."""

    settings: RidgeSettingsRecord
    totals: RidgeTotals
    alpha: float
    solution: RidgeSolutionRecord
