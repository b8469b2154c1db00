"""The fields of a generalised Gaussian process: of classes or counts."""

from __future__ import annotations

from streamkernel.records.gaussian import TunedSettingsRecord, TuningRecord
from streamkernel.records.json_types import Count, NonNegative
from streamkernel.records.model import CountedTotals, ModelRecord
from streamkernel.records.record import Record


class GeneralisedSettingsRecord(TunedSettingsRecord):
    """The options of a fit."""

    newton_tol: float
    max_iterations: Count


class NewtonIteration(Record):
    """One iteration: the objective before it, the predicted decrease of a full step, and the step length."""

    objective: float
    promised: float
    step: float


class GeneralisedSolutionRecord(Record):
    """The minimum; `decrement` is twice what a further step would gain."""

    method: str
    loss: float
    objective: float
    decrement: float
    converged: bool
    path: tuple[NewtonIteration, ...]
    iterations: Count
    log_evidence: float
    effective_df: float


class GeneralisedRecord(ModelRecord):
    """The fields of a generalised Gaussian process."""

    settings: GeneralisedSettingsRecord
    totals: CountedTotals
    likelihood: str
    signal_variance: NonNegative
    residual_share: NonNegative
    solution: GeneralisedSolutionRecord
    covariance_share: NonNegative = 1.0
    tuning: TuningRecord | None = None
