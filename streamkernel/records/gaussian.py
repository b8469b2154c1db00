"""The fields of a Gaussian process and of a committee."""

from __future__ import annotations

from typing import Literal

from streamkernel.records.basis import SettingsRecord
from streamkernel.records.json_types import Count
from streamkernel.records.model import CountedTotals, UpdatableRecord
from streamkernel.records.record import Record

Given = Literal["evidence"] | float


class TunedSettingsRecord(SettingsRecord):
    """The options of a fit whose hyper-parameters may be searched for."""

    ard: bool
    signal_variance: Given
    tune: str


class Queries(Record):
    """The points that predictions were announced for."""

    rows: Count
    digest: str


class GaussianSettingsRecord(TunedSettingsRecord):
    """The options of a fit of Gaussian process regression."""

    approximation: str
    noise_variance: Given
    block_size: Count
    partition: str
    queries: Queries | None = None


class TuningRecord(Record):
    """The search for hyper-parameters; `best` is the point whose lengthscales the model has."""

    objective: str
    parameters: tuple[str, ...]
    sample_rows: Count
    best: Count | None = None
    moved: tuple[str, ...] = ()
    signal: float | None = None
    noise: float | None = None
    value: float | None = None


class QuerySet(Record):
    """The rule on the number of query points, with its numbers."""

    points: Count
    from_features: float | None
    from_sample: float | None
    sample: Count


class GaussianTotals(CountedTotals):
    """Sums over the rows of the fit."""

    residual_trace: float
    log_det: float


class GaussianSolutionRecord(Record):
    """The evidence of all rows and targets in nats, and the effective degrees of freedom of each target."""

    log_evidence: float
    bound: float | None
    effective_df: tuple[float, ...]


class GaussianRecord(UpdatableRecord):
    """The fields of a Gaussian process or a committee."""

    settings: GaussianSettingsRecord
    totals: GaussianTotals
    approximation: str
    row_noise: tuple[float, float] | None
    block_size: int | None
    solution: GaussianSolutionRecord
    tuning: TuningRecord | None = None
    query_set: QuerySet | None = None
