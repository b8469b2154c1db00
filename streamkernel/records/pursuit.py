"""The fields of a matching pursuit."""

from __future__ import annotations

from typing import Literal

from streamkernel.records.basis import SettingsRecord
from streamkernel.records.json_types import Count
from streamkernel.records.model import ModelRecord, Totals
from streamkernel.records.record import Record


class ValidationTable(Record):
    """Another table, whose rows chose the size."""

    rows: Count
    fingerprint: str


class PursuitSettingsRecord(SettingsRecord):
    """The options of a pursuit."""

    variant: str
    loss: Literal["squared", "logistic"]
    shrinkage: float
    pool: str
    draw: str
    eps: float
    quantile: float
    validation: ValidationTable | str | float | None
    choose_by: str
    bound_gamma: float | None
    candidates: Count | None
    picks: Count | None
    patience: Count | None


class PursuitTotals(Totals):
    """Sums of weights over the rows of the fit and over those held out; `counted_rows` counts each once."""

    validation_rows: float
    counted_rows: Count = 0


class PursuitSolution(Record):
    """The terms, and the errors on the rows of the fit and on those held out; None where there are none."""

    terms: Count
    terms_tried: Count
    constant: bool
    training_rmse: tuple[float, ...]
    relative_rss: tuple[float, ...]
    validation_rmse: tuple[float, ...] | None
    least_weakness: float
    ridge: float = 0.0
    training_error: float | None = None
    validation_error: float | None = None


class PursuitRecord(ModelRecord):
    """The fields of a matching pursuit."""

    settings: PursuitSettingsRecord
    totals: PursuitTotals
    solution: PursuitSolution
