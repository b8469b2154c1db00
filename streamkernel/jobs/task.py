"""The task that drives a job, as it travels: by the name of this module, which schedulers and workers import."""

from __future__ import annotations

from importlib import import_module

__all__ = ["drive"]


def drive(jobs: str, id: str) -> str:
    """`streamkernel.jobs.driver.drive`, loaded where it runs.

    A scheduler imports the module of every task that it is given, in the middle of its work: with compilers and
    kernels that would take it seconds, in which it hears of no worker.
    """
    return str(import_module("streamkernel.jobs.driver").drive(jobs, id))
