"""A place with one job in it, in any of its states."""

from __future__ import annotations

from typing import Any

from fuzz.cases import JOB
from fuzz.damage import Files, taken
from fuzz.limits import Yard

from streamkernel import KernelRidge
from streamkernel.atomic import text_digest
from streamkernel.blobs import RecordLog, blobs_at, joined
from streamkernel.blobs.lease import this_process
from streamkernel.jobs.records import JobRecords
from streamkernel.jobs.requests import requested
from streamkernel.jobs.specification import JobSpecification

__all__ = ["STATES", "place_of_job"]

STATES = ("queued", "running", "failed", "done", "cancelling")
_PROGRESS = {
    "attempt": 1, "worker": "tcp://127.0.0.1:1", "sweep": "look", "sweeps_done": 1, "sweeps_planned": 5,
    "sweeps_resumed": 0, "rows_done": 20, "rows_total": 60, "planned_bytes": 1000, "peak_bytes": 900, "seconds": 1.5,
    "time": 1e9,
}  # fmt: skip
_CHANGES: dict[str, dict[str, Any]] = {
    "failed": {"error": {"type": "ResourceLimitError", "message": "too much"}},
    "done": {
        "result": {
            "basis_size": 8, "relative_residual_trace": 0.1, "resumed_sweeps": 0, "seconds": 1.5, "digest": "ab",
        }
    },
}  # fmt: skip


def place_of_job(yard: Yard, state: str) -> Files:
    """Make it at "store", for a model at "model" of the table at "rows"; its files."""
    place, model = yard.place("store"), str(yard.place_of("model"))
    fit, rows = requested(KernelRidge(8)), str(yard.place_of("rows"))
    work = JobSpecification(fit.estimator, fit.plain, rows, model, rows=(0, 40), memory_limit=fit.memory_limit)
    records = JobRecords(str(place), JOB)
    record: Any = records.create(work)
    if state != "queued":
        record = records.advance(record, "running", holder="x")
        records.progress.append({**_PROGRESS, **this_process()}, after=None)
    if state not in ("queued", "running"):
        records.advance(record, state, **_CHANGES.get(state, {}))
        records.note(state, "it ended", level="error" if state == "failed" else "info")
    models = RecordLog(blobs_at(joined(str(place), "models")), text_digest(model)[:24])
    models.append({"job": JOB, "model": model}, after=None)
    return taken(place)
