"""/healthz and /metrics, by GET or HEAD, for programs that watch the service."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from streamkernel.service.access_control import ADMITTED
from streamkernel.service.metrics import CONTENT_TYPE, Metrics
from streamkernel.service.model_registry import Registry
from streamkernel.service.model_routes import left_out_field
from streamkernel.service.schemas import ERRORS, Health


def health_router(registry: Registry, metrics: Metrics) -> APIRouter:
    """Routes of health and metrics. Health is open to everyone; names are only in answers to clients with the token."""
    router = APIRouter()

    # Only GET is in the schema: two operations of one function would have one name.
    @router.head("/healthz", include_in_schema=False)
    @router.get("/healthz", response_model=Health, summary="State of the service", responses=ERRORS(421))
    async def healthz(request: Request) -> JSONResponse:
        entries = [entry for entry in registry.entries.values() if not entry.outside]
        failing = sum(entry.problem is not None for entry in entries)
        ready = sum(entry.served is not None for entry in entries)
        stale = registry.stale is not None
        status = "degraded" if failing or stale else "ok"
        health = {"status": status, "models": ready, "failing": failing, "stale": stale}
        return JSONResponse(health | left_out_field(registry, names=bool(request.scope.get(ADMITTED))))

    @router.head("/metrics", include_in_schema=False)
    @router.get(
        "/metrics",
        response_class=Response,
        summary="Metrics for Prometheus",
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "text"}, **ERRORS(401, 421),
        },
    )  # fmt: skip
    async def told() -> Response:  # operation ids are made of these names
        return Response(metrics.text(), media_type=CONTENT_TYPE.decode())

    return router
