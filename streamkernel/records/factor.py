"""The fields of a factor."""

from __future__ import annotations

from streamkernel.records.basis import BasisRecord
from streamkernel.records.json_types import Count
from streamkernel.records.record import Record


class StopRecord(Record):
    """The rule that cut the basis, and where; of the rule "trace" its name alone."""

    rule: str
    looked: Count | None = None
    reached: bool | None = None
    value: float | None = None


class StoredColumns(Record):
    """The dtype of G, and the digest by which G and the basis belong together."""

    dtype: str
    fingerprint: str


class FactorRecord(BasisRecord):
    """The fields of a factor; `columns` is None where G was not stored."""

    column_names: tuple[str, ...]
    named_columns: bool | None = None
    columns: StoredColumns | None = None
    stop: StopRecord | None = None
