"""The fields of every saved object: its basis, how that was chosen, and the run."""

from __future__ import annotations

from streamkernel.records.json_types import Count, JsonObject
from streamkernel.records.record import Record


class SettingsRecord(Record):
    """The options of a fit, before defaults and searches; kinds of models add their own."""

    n_components: Count | None
    kernel: JsonObject
    lengthscale: str | float | tuple[float, ...] | None
    tol: float
    rule: str
    objective: str | float
    rule_options: JsonObject
    scale: str
    fit_intercept: bool
    seed: int
    metric: str = "none"
    metric_rank: Count | None = None


class LengthscaleChoice(Record, kw_only=False):
    """A lengthscale and the record of its choice; `grid` and `scores` are empty without a search."""

    value: float
    median: float
    sample_rows: Count
    grid: tuple[float, ...]
    scores: tuple[float, ...]


class MetricRound(Record, kw_only=False):
    """A metric that was tried: its form and round, its number of columns, and the ridge regression in it.

    `error` is the mean squared error on held-out rows of the sample, of targets in units of their deviations, summed
    over targets; for classes the mean of the share of wrong predictions and the Brier score.
    """

    form: str
    round: Count
    columns: Count
    lengthscale: float
    alpha: float
    error: float


class MetricChoiceRecord(Record):
    """The search for a metric and a kernel: what was tried, the positions of the chosen one and of the best plain
    kernel, and the sample.
    """

    rounds: tuple[MetricRound, ...]
    best: Count
    plain: Count
    sample_rows: Count

    @property
    def tried_metrics(self) -> bool:
        """Whether metrics were tried; else the search chose the kernel only."""
        return any(each.round > 0 for each in self.rounds)

    @property
    def chosen(self) -> MetricRound:
        """What was chosen: a metric, or the plain kernel."""
        return self.rounds[self.best]

    @property
    def plain_error(self) -> float:
        """The error of the best plain kernel."""
        return self.rounds[self.plain].error


class ScalerRecord(Record):
    """The numbers of a scaler, one for each column.

    `kind` is "standard" (a `Scaler`), "robust" (a `ClippedScaler`, with `lower` and `upper`), "rank" (a `RankScaler`,
    without `scale`, whose other numbers are arrays) or "sparse" (a `SparseScaler`, without `mean`).
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    kind: str = "standard"
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()


class Rows(Record):
    """The rows that a basis was chosen from: [start, stop) of the table."""

    start: Count
    stop: Count
    count: Count


class RoundRecord(Record, kw_only=False):
    """One round of a rule: basis sizes at its start and end, and numbers of candidates and scoring rows.

    `residual_trace` is the exact residual trace at the start; None if the round did not read all rows.
    """

    start: Count
    stop: Count
    residual_trace: float | None
    candidates: Count
    scoring_rows: Count


class Certificate(Record):
    """The exact traces of K and of ``K - K~`` over all rows, and their ratio."""

    trace: float
    residual_trace: float
    relative_residual_trace: float


class SweepRecord(Record, kw_only=False):
    """One pass over the rows: its name, seconds, rows, tasks, and whether a checkpoint replaced it."""

    name: str
    seconds: float
    rows: Count
    tasks: Count
    resumed: bool


class Executor(Record):
    """Where the sweeps ran; `workers` is 0 but for a cluster."""

    name: str
    workers: Count
    threads: Count


class Run(Record):
    """Times, memory and executor of a run; not part of the digest."""

    seconds: float
    sweeps: tuple[SweepRecord, ...]
    planned_memory_bytes: Count
    peak_memory_bytes: Count
    executor: Executor


class BasisRecord(Record):
    """The fields of every saved object."""

    settings: SettingsRecord
    kernel: JsonObject
    lengthscale: float | tuple[float, ...] | None
    scaler: ScalerRecord | None
    rows: Rows
    table_fingerprint: str
    requested_basis: Count
    basis_size: Count
    rule: str
    ended: str
    certificate: Certificate
    lengthscale_choice: LengthscaleChoice | None = None
    metric_choice: MetricChoiceRecord | None = None
    rounds: tuple[RoundRecord, ...] = ()
    volatile: tuple[str, ...] = ()
    software: JsonObject | None = None
    run: Run | None = None
