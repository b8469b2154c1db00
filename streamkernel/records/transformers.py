"""The fields of the transformers of one input."""

from __future__ import annotations

from streamkernel.records.basis import BasisRecord
from streamkernel.records.factor import StopRecord
from streamkernel.records.json_types import Count
from streamkernel.records.record import Record


class TransformerRecord(BasisRecord):
    """The fields of every transformer."""

    estimator: str
    columns: tuple[str, ...]
    sweep_count: Count
    named_columns: bool | None = None


class NystroemRecord(TransformerRecord):
    """The fields of a Nystroem transformer."""


class PrincipalComponents(Record):
    """The number of components, and the parts of the trace that they leave."""

    requested: Count | None
    count: Count
    unexplained: float
    left_by_basis: float
    residual_trace: float
    relative_residual_trace: float


class KernelPCARecord(TransformerRecord):
    """The fields of a kernel PCA; `stop` tells where `sparse="bound"` cut the basis."""

    eigen: PrincipalComponents
    stop: StopRecord | None = None
