"""Routes that describe models: certificate, residual curve, columns, fitted rows. No answer has a path."""

from __future__ import annotations

import numpy as np
from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse

from streamkernel.kernels import SparseKernel
from streamkernel.kinds import title_of
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.ridge import RidgeRecord
from streamkernel.records import UpdatableRecord
from streamkernel.report.facts.standing import Standing
from streamkernel.service.loaded_model import LoadedModel
from streamkernel.service.model_registry import Entry, Registry, Why
from streamkernel.service.schemas import ERRORS, Model, ModelList
from streamkernel.type_aliases import Fields

_MOST_POINTS = 160
_MOST_LEFT_OUT = 100
_OTHER_METHODS = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"]


def models_router(registry: Registry) -> APIRouter:
    """GET /v1/models and GET /v1/models/{name}; and 405 for methods other than POST at .../predict."""
    router = APIRouter()

    @router.get("/v1/models", response_model=ModelList, summary="Served models", responses=ERRORS(401, 421))
    async def models() -> JSONResponse:
        found = [summary(entry) for entry in registry.entries.values() if not entry.outside]
        stale = registry.stale
        fields = None if stale is None else {"since": stale.since, "error": _error(stale.error)}
        return JSONResponse({"models": found, "stale": fields} | left_out_field(registry))

    @router.get(
        "/v1/models/{name}", response_model=Model, summary="One model", responses=ERRORS(401, 403, 404, 421, 422, 503)
    )
    async def model(name: str) -> JSONResponse:
        entry = registry.entry(name)
        return JSONResponse(summary(entry) if entry.served is None else described(entry, entry.served))

    # `AccessControl` takes POST only; without this route "NAME/predict" would be taken for a name.
    @router.api_route("/v1/models/{name}/predict", methods=_OTHER_METHODS, include_in_schema=False)
    async def wrong_method(name: str) -> None:
        raise HTTPException(405, headers={"Allow": "POST"})

    # A name with a slash in it is refused as a wrong name, not as "not found".
    @router.get("/v1/models/{name:path}", include_in_schema=False)
    async def wrong_name(name: str) -> JSONResponse:
        return JSONResponse(summary(registry.entry(name)))

    return router


def left_out_field(registry: Registry, *, names: bool = True) -> Fields:
    """The field `left_out`: what is not served, and why; empty if nothing is left out."""
    found = list(registry.left_out.items())[:_MOST_LEFT_OUT]
    return {"left_out": [{"name": name if names else None, "why": why} for name, why in found]} if found else {}


def summary(entry: Entry) -> Fields:
    """The fields of one model in the list."""
    error = entry.problem
    fields: Fields = {
        "name": entry.name,
        "ready": entry.served is not None,
        "error": None if error is None else _error(error),
    }
    if entry.served is None:
        return fields
    served = entry.served
    record = served.model.record
    return fields | {
        "estimator": record.estimator,
        "title": title_of(served.model),
        "generation": served.generation,
        "digest": served.digest,
        "loaded": entry.loaded,
        "basis_size": record.basis_size,
        "features": len(served.columns),
        "rows": record.row_count,
        "relative_residual_trace": record.certificate.relative_residual_trace,
        "held_out": None if served.standing is None else _held_out(served.standing),
    }


def _held_out(found: Standing) -> Fields:
    score, se = (value if np.isfinite(value) else None for value in (found.score, found.standard_error))
    return {**vars(found), "score": score, "standard_error": se}


def _error(error: Why) -> dict[str, str]:
    return {"type": error[0], "message": error[1]}


def described(entry: Entry, served: LoadedModel) -> Fields:
    """All fields of one model."""
    record, path = served.model.record, served.model.residual_path
    # Evenly by logarithm, where the curve is drawn; both ends are among them.
    n = len(path) - 1
    ranks = sorted({0, n, *(int(rank) for rank in np.geomspace(1, max(n, 1), _MOST_POINTS) if rank < n)})
    scaler = served.model.scaler
    updates = record.updates if isinstance(record, UpdatableRecord) else None
    run = record.run
    return summary(entry) | {
        "columns": list(served.columns),
        "source_columns": None if served.raw is None else list(served.raw.names),
        "target_names": list(record.target_names),
        "classes": None if served.classes is None else list(served.classes),
        "std": served.has_std,
        "probabilities": served.has_probabilities,
        "kernel": (record.kernel["part"] if record.kernel["kernel"] == SparseKernel.name else record.kernel)["kernel"],
        "lengthscale": served.model.lengthscale,
        "metric": _metric(served.model),
        "alpha": record.alpha if isinstance(record, RidgeRecord) else None,
        "rule": record.rule,
        "ended": record.ended,
        "sweeps": record.sweep_count,
        "certificate": record.certificate.to_config(),
        "residual_curve": {
            "basis_size": ranks,
            "share": [float(path[rank] / path[0]) if path[0] else 0.0 for rank in ranks],
        },
        "fitted_on": {
            "rows": record.rows.to_config(),
            "table_fingerprint": record.table_fingerprint,
            "dtype": record.dtype,
            "seconds": None if run is None else run.seconds,
            "updates": None
            if updates is None
            else {"times": updates.times, "rows": updates.rows, "stale": updates.stale},
        },
        "sparse": served.model.sparse,
        "means": None if scaler is None or served.model.sparse else scaler.mean.tolist(),
        "example": _example(served),
    }


def _example(served: LoadedModel) -> list[float] | dict[str, float]:
    """The example row; of a model of sparse rows its values that are not 0, by name."""
    row = served.example
    if not served.model.sparse:
        values: list[float] = row.tolist()
        return values
    return {served.columns[column]: float(row[column]) for column in np.flatnonzero(row)}


def _metric(model: PredictingModel) -> Fields | None:
    """The metric of a model, with the weights of the columns by name."""
    fields, weights = model.metric_fields, model.column_weights
    if fields is None:
        return None
    named = None if weights is None else dict(zip(model.column_names, weights.tolist(), strict=True))
    return {**fields, "weights": named}
