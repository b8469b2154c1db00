"""Records: the fields of saved models, transformers and factors that are not arrays. docs/model.md describes each.

A class for each kind, with a class for each nested object. All of them are read and written by `Record`.
"""

from streamkernel.records.basis import (
    BasisRecord,
    Certificate,
    Executor,
    LengthscaleChoice,
    RoundRecord,
    Rows,
    Run,
    ScalerRecord,
    SettingsRecord,
    SweepRecord,
)
from streamkernel.records.factor import FactorRecord, StopRecord, StoredColumns
from streamkernel.records.gaussian import (
    GaussianRecord,
    GaussianSettingsRecord,
    GaussianSolutionRecord,
    GaussianTotals,
    QuerySet,
    TuningRecord,
)
from streamkernel.records.generalised import (
    GeneralisedRecord,
    GeneralisedSettingsRecord,
    GeneralisedSolutionRecord,
    NewtonIteration,
)
from streamkernel.records.json_types import JsonObject
from streamkernel.records.kernel_cca import (
    KernelCCABound,
    KernelCCARecord,
    KernelCCASettingsRecord,
    KernelCCASolution,
    SecondView,
    ViewRecord,
)
from streamkernel.records.model import (
    CheckedRows,
    CountedTotals,
    ModelRecord,
    SeenRows,
    Totals,
    UpdatableRecord,
    Updates,
)
from streamkernel.records.pursuit import (
    PursuitRecord,
    PursuitSettingsRecord,
    PursuitSolution,
    PursuitTotals,
)
from streamkernel.records.record import Record
from streamkernel.records.ridge import RidgeRecord, RidgeSettingsRecord, RidgeSolutionRecord, RidgeTotals
from streamkernel.records.transformers import KernelPCARecord, NystroemRecord, PrincipalComponents, TransformerRecord

__all__ = [
    "BasisRecord",
    "Certificate",
    "CheckedRows",
    "CountedTotals",
    "Executor",
    "FactorRecord",
    "GaussianRecord",
    "GaussianSettingsRecord",
    "GaussianSolutionRecord",
    "GaussianTotals",
    "GeneralisedRecord",
    "GeneralisedSettingsRecord",
    "GeneralisedSolutionRecord",
    "JsonObject",
    "KernelCCABound",
    "KernelCCARecord",
    "KernelCCASettingsRecord",
    "KernelCCASolution",
    "KernelPCARecord",
    "LengthscaleChoice",
    "ModelRecord",
    "NewtonIteration",
    "NystroemRecord",
    "PrincipalComponents",
    "PursuitRecord",
    "PursuitSettingsRecord",
    "PursuitSolution",
    "PursuitTotals",
    "QuerySet",
    "Record",
    "RidgeRecord",
    "RidgeSettingsRecord",
    "RidgeSolutionRecord",
    "RidgeTotals",
    "RoundRecord",
    "Rows",
    "Run",
    "ScalerRecord",
    "SecondView",
    "SeenRows",
    "SettingsRecord",
    "StopRecord",
    "StoredColumns",
    "SweepRecord",
    "Totals",
    "TransformerRecord",
    "TuningRecord",
    "UpdatableRecord",
    "Updates",
    "ViewRecord",
]
