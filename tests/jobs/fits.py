"""The fit of this folder's tests, and looks at what becomes of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from problems import zarr_of_chunks

from streamkernel import KernelRidge
from streamkernel.jobs import Job

__all__ = ["estimator", "events", "rows_at", "small", "sweeps_begun", "until"]


def estimator(n: int = 160, **changed: Any) -> KernelRidge:
    """Of some twenty short sweeps, so that there is something to interrupt."""
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


def sweeps_begun(job: Job) -> list[int]:
    """Numbers of the sweeps that were not taken from checkpoints, as often as they were begun."""
    texts = [event["text"] for event in events(job, "sweep")]
    return [int(text.split()[1].rstrip(",")) for text in texts if "began" in text]


def until(what: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The first true value."""
    deadline = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)
    return value
