"""The fit of this folder's tests, and looks at what becomes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters import until
from problems import zarr_of_chunks

from streamkernel import KernelRidge
from streamkernel.errors import StreamKernelError
from streamkernel.jobs import Job
from streamkernel.jobs.records import JobRecords
from streamkernel.jobs.requests import requested
from streamkernel.jobs.specification import JobSpecification

__all__ = ["estimator", "events", "failure", "rows_at", "small", "sweeps_begun", "until", "written"]


def estimator(n: int = 128, **changed: Any) -> KernelRidge:
    """Of some dozen short sweeps, so that there is something to interrupt."""
    given = {"random_state": 3, "rule": "rpcholesky", "rule_options": {"block": 16}, "lengthscale": 3.0, **changed}
    return KernelRidge(n, **given)


def small(n: int = 20) -> KernelRidge:
    return KernelRidge(n, random_state=1)


def rows_at(path: Path, *, nan: bool = False, rows: int = 600) -> str:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((rows, 3))
    y = X[:, 0] + np.sin(X[:, 1])
    if nan:
        X[rows // 2, 1] = np.nan
    return zarr_of_chunks(path, X, y, 100)


def events(job: Job, *kinds: str) -> list[dict[str, Any]]:
    return [event for event in job.logs() if not kinds or event["event"] in kinds]


def failure(job: Job, kind: type[StreamKernelError], match: str) -> None:
    """Whoever waits meets the error of the driver."""
    for ask in (job.wait, job.result):
        with pytest.raises(kind, match=match):
            ask(60)
    assert job.status == "failed"
    assert job.error is not None
    assert job.error["type"] == kind.__name__


def sweeps_begun(job: Job) -> list[int]:
    """Numbers of the sweeps that were not taken from checkpoints, as often as they were begun."""
    texts = [event["text"] for event in events(job, "sweep")]
    return [int(text.split()[1].rstrip(",")) for text in texts if "began" in text]


def written(place: Path, table: str, model: Path, *, lease: float = 1.5, number: int = 1, **state: Any) -> JobRecords:
    """Records of a job that nobody has submitted, in the state that is given."""
    records = JobRecords(str(place), f"20260101-000000-{number:08x}")
    work = JobSpecification("ridge", requested(small()).plain, table, str(model), lease_seconds=lease)
    queued = records.create(work)
    if state:
        assert records.state.append({**queued.value, **state}, after=queued) is not None
    return records
