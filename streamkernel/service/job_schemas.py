"""The schemas of jobs, in requests and answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictBool, StrictInt, StrictStr

from streamkernel.kinds import KINDS
from streamkernel.service.schemas import ErrorDetail, Strict
from streamkernel.settings.parameter import parameters_in
from streamkernel.type_aliases import Fields

_Location = Annotated[StrictStr, Field(min_length=1, max_length=1024)]
_Row = StrictInt | None

_KINDS = "; ".join(f"{kind.name}: {kind.title}" for kind in KINDS.values())
_Estimator = Annotated[StrictStr, Field(description=_KINDS, json_schema_extra={"enum": list(KINDS)})]


def _properties() -> Fields:
    """JSON schema of each parameter; where estimators state it differently, one for each statement."""
    found: dict[str, dict[str, Fields]] = {}
    for kind in KINDS.values():
        for name, (parameter, default) in parameters_in(kind.settings).items():
            if name != "queries":  # It is a field of the request.
                found.setdefault(name, {})[kind.name] = parameter.json_schema(default)
    return {name: _joined(by_kind) for name, by_kind in found.items()}


def _joined(by_kind: dict[str, Fields]) -> Fields:
    schemas: list[Fields] = []
    for schema in by_kind.values():
        if schema not in schemas:
            schemas.append(schema)
    whole = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return whole if len(by_kind) == len(KINDS) else whole | {"title": f"Of {', '.join(by_kind)}"}


class JobRequest(Strict):
    """A fit. A location is a name below a root of the service, or a path or URL that lies below one.

    `options` are the parameters of the estimator, by name. `rows` is a half-open range [first, last). `queries` is
    the table of query points, for estimators that have them.
    """

    estimator: _Estimator
    table: _Location
    model: _Location
    options: Fields = Field(default_factory=dict, json_schema_extra={"properties": _properties()})
    rows: Annotated[list[_Row], Field(min_length=2, max_length=2)] | None = None
    queries: _Location | None = None
    overwrite: StrictBool = False
    memory_limit: StrictInt | Annotated[StrictStr, Field(max_length=40)] | None = None


class JobProgress(Strict):
    """The latest progress of the job; `attempt` counts its drivers, from 1, and `share` is that of all its work."""

    sweep: str
    sweeps_done: int
    sweeps_planned: int | None
    sweeps_resumed: int
    rows_done: int
    rows_total: int
    seconds: float
    planned_bytes: int | None
    peak_bytes: int
    attempt: int
    time: float
    share: float | None = None
    seconds_left: float | None = None


class JobResult(Strict):
    basis_size: int
    relative_residual_trace: float
    resumed_sweeps: int
    seconds: float
    digest: str


class JobStatus(Strict):
    """`status` is queued, running, interrupted, done, failed, cancelling, cancelled, or unreadable (damaged)."""

    id: str
    status: str
    error: ErrorDetail | None
    estimator: str | None = None
    table: str | None = None
    model: str | None = None
    submitted: float | None = None
    changed: float | None = None
    progress: JobProgress | None = None
    result: JobResult | None = None


class JobList(Strict):
    """`time` is the time of the service's clock; `submits` is whether this service accepts jobs."""

    jobs: list[JobStatus]
    time: float
    submits: bool


class JobEvent(Strict):
    time: float
    event: str
    level: str
    text: str


class JobLogs(Strict):
    """`last` is the number of the last event: give it as `after` to get later ones."""

    events: list[JobEvent]
    last: int
