"""Records: the fields of saved objects that are not arrays. docs/model.md describes each.

A class for each nested object and for what several kinds have; those of one kind stand beside its model, in `models/`,
and beside its settings. All of them are read and written by `Record`.
"""

from streamkernel.records.basis import (
    BasisRecord,
    Certificate,
    Executor,
    LengthscaleChoice,
    MetricChoiceRecord,
    MetricRound,
    RoundRecord,
    Rows,
    Run,
    ScalerRecord,
    SettingsRecord,
    SweepRecord,
)
from streamkernel.records.factor import FactorRecord, StopRecord, StoredColumns
from streamkernel.records.json_types import Count, JsonObject, NonNegative
from streamkernel.records.model import (
    CheckedRows,
    CountedTotals,
    FittedRecord,
    ModelRecord,
    SeenRows,
    Totals,
    UpdatableRecord,
    Updates,
    Validation,
)
from streamkernel.records.record import Record

__all__ = [
    "BasisRecord",
    "Certificate",
    "CheckedRows",
    "Count",
    "CountedTotals",
    "Executor",
    "FactorRecord",
    "FittedRecord",
    "JsonObject",
    "LengthscaleChoice",
    "MetricChoiceRecord",
    "MetricRound",
    "ModelRecord",
    "NonNegative",
    "Record",
    "RoundRecord",
    "Rows",
    "Run",
    "ScalerRecord",
    "SeenRows",
    "SettingsRecord",
    "StopRecord",
    "StoredColumns",
    "SweepRecord",
    "Totals",
    "UpdatableRecord",
    "Updates",
    "Validation",
]
