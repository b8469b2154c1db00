"""The task that drives a job; it is pickled as a name in this module, which schedulers and workers import."""

from __future__ import annotations

from importlib import import_module


def drive(jobs: str, id: str) -> str:
    """Call `streamkernel.jobs._driver.drive`, which is loaded in the process that runs the task.

    A scheduler imports the module of every task that it receives, in its event loop. With compilers and kernels the
    import would take seconds, in which the scheduler answers no worker.
    """
    return str(import_module("streamkernel.jobs._driver").drive(jobs, id))
