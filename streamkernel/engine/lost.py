"""A scheduler or worker that is lost: one sentence of ours for the many in which Dask tells it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from distributed import Client
from distributed.client import ClosedClientError, FutureCancelledError, FuturesCancelledError

from streamkernel.errors import ClusterError, StreamKernelError

__all__ = ["dask_is_silent", "scheduler_of", "told_if_lost"]

_LOGGERS = ("distributed.client", "distributed.core", "distributed.comm.tcp", "tornado.application")


def scheduler_of(client: Client) -> str:
    """Its address, for messages."""
    scheduler = client.scheduler
    return "its address" if scheduler is None else str(scheduler.address)


@contextlib.contextmanager
def told_if_lost(who: str, when: str, then: str) -> Iterator[None]:
    """Say `who` was lost `when`, and what to do `then`, whatever Dask says of it.

    Raises
    ------
    ClusterError
    """
    try:
        yield
    except StreamKernelError:
        raise
    except (ClosedClientError, FutureCancelledError, FuturesCancelledError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's, of what a task read or wrote: those of Dask's connections have no number
        # Their texts are of keys and sockets, on several lines; the error itself is the cause of ours (--debug).
        why = error.reason if isinstance(error, FutureCancelledError) else type(error).__name__
        raise ClusterError(f"{who} was lost {when} ({why}); {then}") from error


@contextlib.contextmanager
def dask_is_silent() -> Iterator[None]:
    """No log of Dask's client, with its tracebacks, where we tell of a loss ourselves."""

    def nothing(record: logging.LogRecord) -> bool:
        return False

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(nothing)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(nothing)
