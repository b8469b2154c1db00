"""Fits that run on a cluster and outlive whoever asked for them.

::

    connect(address) -> JobsSession --submit--> Job     what to do, and what became of it: records, plain JSON
                                       |          ^
                                       v          |
                          a task on the cluster, the driver: holds the job's lease, fits through the engine,
                          keeps checkpoints, publishes the model

The records are all that a job is: lose the client, the driver's worker or the scheduler, and whoever looks at them
next has the job driven again from its last checkpoint.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamkernel.jobs.job import Job
    from streamkernel.jobs.session import JobsSession, connect

__all__ = ["Job", "JobsSession", "connect"]

# Looked up when they are asked for: a scheduler unpickles `streamkernel.jobs.task`, and must not load compilers for it.
_HOMES = {
    "Job": "streamkernel.jobs.job",
    "JobsSession": "streamkernel.jobs.session",
    "connect": "streamkernel.jobs.session",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'streamkernel.jobs' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
