"""The schemas of answers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from streamkernel.service.http_errors import STATUSES
from streamkernel.type_aliases import Fields


class Strict(BaseModel):
    # No other fields; and JSON has neither infinity nor NaN.
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class ErrorDetail(Strict):
    """`type` is the name of a class in `streamkernel.errors`, or one of the service's own; `message` is one line."""

    type: str
    message: str


class Error(Strict):
    """The body of every error."""

    error: ErrorDetail


class LeftOut(Strict):
    """Something beside the models that is not served, and why; `name` is null for a client without the token."""

    name: str | None
    why: str


class Health(Strict):
    """`status` is "ok", or "degraded" while the newest generation of a model cannot be used or cannot be read.

    `models` counts those that are served, `failing` those with such a newest generation. `stale` is whether
    the place of the models cannot be read. `left_out` is there if something is not served.
    """

    status: str
    models: int
    failing: int
    stale: bool
    left_out: list[LeftOut] | None = None


class HeldOutScore(Strict):
    """A score on rows that stayed out of the fit: `measure` is "accuracy", "rmse", "relative_rmse" or "pinball".

    Scores of models with the same `measure` and `same_rows` are of the same rows of one table. No others can be ranked.
    """

    measure: str
    score: float | None
    standard_error: float | None
    rows: int
    same_rows: str


class ModelSummary(Strict):
    """One model. A model that cannot be read has only a name and an error. `title` is its kind in words."""

    name: str
    ready: bool
    error: ErrorDetail | None
    estimator: str | None = None
    title: str | None = None
    generation: int | None = None
    digest: str | None = None
    loaded: float | None = None
    basis_size: int | None = None
    features: int | None = None
    rows: int | None = None
    relative_residual_trace: float | None = None
    held_out: HeldOutScore | None = None


class Staleness(Strict):
    """The place of the models cannot be read; `since` is when it last could be (Unix time)."""

    since: float
    error: ErrorDetail


class ModelList(Strict):
    """While `stale` is not null, the models are served as they last were."""

    models: list[ModelSummary]
    stale: Staleness | None
    left_out: list[LeftOut] | None = None


class Certificate(Strict):
    """tr(K), tr(K - K~) and the ratio tr(K - K~) / tr(K), exact, over all rows."""

    trace: float
    residual_trace: float
    relative_residual_trace: float


class ResidualCurve(Strict):
    """`share` is the part of the trace that the first `basis_size` basis functions leave."""

    basis_size: list[int]
    share: list[float]


class Metric(Strict):
    """How far a step of one standard deviation in each column moves a row, for the kernel; errors of the search.

    `weights` are by column; without a metric (form "none") they are null. A metric that was given has no errors.
    """

    form: str
    columns: int
    held_out_error: float | None
    plain_error: float | None
    weights: dict[str, float] | None


class FittedOn(Strict):
    rows: dict[str, int]
    table_fingerprint: str
    dtype: str
    seconds: float | None
    updates: Fields | None


class Model(ModelSummary):
    """`example` is a row of the basis, `means` the means of the columns or their medians; both in the rows' units.

    `source_columns` are those of the table of the fit, where these are not all numbers. `sparse` is whether rows are
    sparse: `example` then has the values that are not 0, by name, and there are no means.
    """

    columns: list[str] | None = None
    source_columns: list[str] | None = None
    target_names: list[str] | None = None
    classes: list[Any] | None = None
    std: bool | None = None
    probabilities: bool | None = None
    kernel: str | None = None
    lengthscale: float | list[float] | None = None
    metric: Metric | None = None
    alpha: float | None = None
    rule: str | None = None
    ended: str | None = None
    sweeps: int | None = None
    certificate: Certificate | None = None
    residual_curve: ResidualCurve | None = None
    fitted_on: FittedOn | None = None
    means: list[float] | None = None
    example: list[float] | dict[str, float] | None = None
    sparse: bool | None = None


def ERRORS(*statuses: int) -> dict[int | str, Fields]:
    """The errors of an operation, for OpenAPI."""
    return {status: {"model": Error, "description": STATUSES[status][1]} for status in statuses}
