"""Jobs as they are asked for over HTTP, and waited for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
from clusters import until

from streamkernel.service import JobsPlace, Settings

__all__ = ["LONG", "OPTIONS", "asked", "ended", "settings_of", "until"]

OPTIONS = {"n_components": 20, "seed": 1}
# Of some forty sweeps, so that there is something to look at and to cancel.
LONG = {"n_components": 320, "rule": "rpcholesky", "rule_options": {"block": 8}, "lengthscale": 3.0}


def settings_of(folder: Path, scheduler: str | None, **changes: Any) -> Settings:
    jobs = JobsPlace(str(folder / "jobs"), scheduler, roots=(str(folder / "tables"), "s3://bucket/tables"))
    return Settings(folder / "models", jobs=jobs, **changes)


def asked(model: str, table: str = "rows.zarr", **changes: Any) -> dict[str, Any]:
    return {"estimator": "ridge", "options": OPTIONS, "table": table, "model": model, **changes}


def ended(client: httpx.Client, id: str) -> dict[str, Any]:
    def look() -> Any:
        told = client.get(f"/v1/jobs/{id}").json()
        return told if told["status"] in ("done", "failed", "cancelled") else None

    return until(look)
