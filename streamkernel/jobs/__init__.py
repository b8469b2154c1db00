"""Fits that run on a cluster and outlive the process that submitted them.

::

    connect(address) -> JobsSession --submit--> Job     the work and its state: records, plain JSON
                                       |          ^
                                       v          |
                          a task on the cluster, the driver: holds the job's lease, fits through the engine,
                          keeps checkpoints, publishes the model

The records are the whole job. If the client, the driver's worker or the scheduler is lost, the next process that looks
at the records submits a driver again, which resumes from the last checkpoint.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamkernel.jobs.job import Job
    from streamkernel.jobs.session import JobsSession, connect

__all__ = ["Job", "JobsSession", "connect"]

# Loaded on first access: a scheduler unpickles `streamkernel.jobs._task`, and must not load compilers for it.
_HOMES = {
    "Job": "streamkernel.jobs.job",
    "JobsSession": "streamkernel.jobs.session",
    "connect": "streamkernel.jobs.session",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'streamkernel.jobs' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
