"""The fields of a kernel CCA."""

from __future__ import annotations

from streamkernel.records.basis import Certificate, LengthscaleChoice, ScalerRecord, SettingsRecord
from streamkernel.records.json_types import Count, JsonObject, Position
from streamkernel.records.record import Record
from streamkernel.records.transformers import TransformerRecord


class SecondView(Record):
    """The options of the second view."""

    kernel: JsonObject
    lengthscale: str | float | tuple[float, ...] | None


class KernelCCASettingsRecord(SettingsRecord):
    """The options of a fit; those of the first view have the names of every basis."""

    basis_size: Count
    second_view: SecondView
    regularization: float
    bound_gamma: float | None
    delta: float


class ViewRecord(Record):
    """One view: its columns, kernel and scaler. `columns` are positions where both views are in one input."""

    names: tuple[str, ...]
    columns: tuple[Position, ...] | None
    kernel: JsonObject
    lengthscale: float | tuple[float, ...] | None
    scaler: ScalerRecord | None
    certificate: Certificate
    lengthscale_choice: LengthscaleChoice | None = None
    named: bool | None = None


class KernelCCASolution(Record):
    """The number of pairs of variates, and the ridge of each view."""

    requested: Count
    count: Count
    ridges: tuple[float, float]


class KernelCCABound(Record):
    """The parameters of Theorem 4."""

    gamma: float
    delta: float


class KernelCCARecord(TransformerRecord):
    """The fields of a kernel CCA; those of the basis are those of the first view."""

    settings: KernelCCASettingsRecord
    views: tuple[ViewRecord, ViewRecord]
    cca: KernelCCASolution
    bound: KernelCCABound | None
