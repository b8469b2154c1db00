"""The shapes of answers, as OpenAPI tells them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from streamkernel.service.http_errors import STATUSES

__all__ = ["ERRORS", "Error", "ErrorDetail", "Exactly", "Health", "Model", "ModelList"]


class Exactly(BaseModel):
    # Neither is in JSON.
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class ErrorDetail(Exactly):
    """What went wrong: a class of `streamkernel.errors` or a word of its own, and one line for people."""

    type: str
    message: str


class Error(Exactly):
    """Every answer that is no success."""

    error: ErrorDetail


class LeftOut(Exactly):
    """What lies among the models and is not served, told where there is any; `name` is null for who has no token."""

    name: str | None
    why: str


class Health(Exactly):
    """`status` is "ok", or "degraded" while the newest generation of a model cannot be used, or cannot be seen."""

    status: str
    models: int
    failing: int
    stale: bool
    left_out: list[LeftOut] | None = None


class ModelSummary(Exactly):
    """One model. Of a model that cannot be read there is its name and the error. `title` is its estimator in words."""

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


class Staleness(Exactly):
    """The place of the models cannot be seen: when it last could be (Unix time), and why."""

    since: float
    error: ErrorDetail


class ModelList(Exactly):
    """While `stale` is something, the models are served as they were."""

    models: list[ModelSummary]
    stale: Staleness | None
    left_out: list[LeftOut] | None = None


class Certificate(Exactly):
    """tr(K), tr(K - K~) and their ratio, exact, over all rows."""

    trace: float
    residual_trace: float
    relative_residual_trace: float


class ResidualCurve(Exactly):
    """Of the trace, what the first so many basis functions leave."""

    basis_size: list[int]
    share: list[float]


class FittedOn(Exactly):
    rows: dict[str, int]
    table_fingerprint: str
    dtype: str
    seconds: float | None
    updates: dict[str, Any] | None


class Model(ModelSummary):
    """`example` is a row of the basis, `means` those of the columns; both in the units of the rows."""

    columns: list[str] | None = None
    target_names: list[str] | None = None
    classes: list[Any] | None = None
    std: bool | None = None
    probabilities: bool | None = None
    kernel: str | None = None
    lengthscale: float | list[float] | None = None
    alpha: float | None = None
    rule: str | None = None
    ended: str | None = None
    sweeps: int | None = None
    certificate: Certificate | None = None
    residual_curve: ResidualCurve | None = None
    fitted_on: FittedOn | None = None
    means: list[float] | None = None
    example: list[float] | None = None


def ERRORS(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What an operation may be refused with."""
    return {status: {"model": Error, "description": STATUSES[status][1]} for status in statuses}
