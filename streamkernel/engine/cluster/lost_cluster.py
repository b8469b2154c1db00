"""A lost scheduler or worker: one error message in place of Dask's many."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from distributed import Client

from streamkernel.engine.cluster.cluster_state import (
    AllExit,
    ClosedClientError,
    FutureCancelledError,
    FuturesCancelledError,
)
from streamkernel.errors import ClusterError, StreamKernelError

_LOGGERS = (
    "distributed.batched",
    "distributed.client",
    "distributed.core",
    "distributed.comm.tcp",
    "tornado.application",
)


def scheduler_of(client: Client) -> str:
    """Address of the client's scheduler, for messages."""
    scheduler = client.scheduler
    return "its address" if scheduler is None else str(scheduler.address)


@contextlib.contextmanager
def translated_loss(who: str, when: str, then: str) -> Iterator[None]:
    """Raise any of Dask's errors for a lost connection as one: `who` was lost, `when`, and what to do `then`.

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
            raise  # an error of the system in a task's reads or writes; errors of Dask's connections have no number
        # Dask's messages are about keys and sockets, on several lines. They remain visible as the cause (--debug).
        why = error.reason if isinstance(error, FutureCancelledError) else type(error).__name__
        raise ClusterError(f"{who} was lost {when} ({why}); {then}") from error


@contextlib.contextmanager
def dask_is_silent(*, altogether: bool = False) -> Iterator[None]:
    """Drop the log lines of Dask's client, with their tracebacks: our own error reports the loss.

    Parameters
    ----------
    altogether : True to drop those of scheduler and nannies too, for our own cluster in this process. Dask's own
        `silence_logs` ends before the last threads of the cluster, which then log that connections are closed.
    """

    def nothing(record: logging.LogRecord) -> bool:
        return False

    # For good: the event loop tells when its tasks are collected as garbage, after the block too.
    logging.getLogger("asyncio").addFilter(_is_news)
    silent: list[logging.Filterer] = [logging.getLogger(name) for name in _LOGGERS]
    if altogether:
        silent += logging.getLogger("distributed").handlers
    for each in silent:
        each.addFilter(nothing)
    try:
        yield
    finally:
        for each in silent:
            each.removeFilter(nothing)


def _is_news(record: logging.LogRecord) -> bool:
    """False for the exception by which Dask's client ends its own waiting: a signal may come before it is caught."""
    return record.exc_info is None or not isinstance(record.exc_info[1], AllExit)
