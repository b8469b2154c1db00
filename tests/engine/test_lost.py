"""What is said of a scheduler that is lost: one line, whatever Dask makes of it."""

from __future__ import annotations

import asyncio
import errno
import logging

import pytest
from distributed.client import AllExit, ClosedClientError, FutureCancelledError
from distributed.comm.core import CommClosedError

from streamkernel.engine.cluster.lost_cluster import dask_is_silent, translated_loss
from streamkernel.errors import ClusterError, StoreError


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (FutureCancelledError("a/leaf-1", "connection-lost", "Client lost the connection.\nDo"), "connection-lost"),
        (CommClosedError("in <TLS (closed) ConnectionPool.broadcast local=tls://..>\n"), "CommClosedError"),
        (ClosedClientError("Client is closed. Can't send update-graph message."), "ClosedClientError"),
        (OSError("Timed out trying to connect to tls://.. after 30 s"), "OSError"),
        (TimeoutError(), "TimeoutError"),
    ],
)  # fmt: skip
def test_one_sentence(error: Exception, why: str) -> None:
    with pytest.raises(ClusterError) as told, translated_loss("the scheduler", "during sweep 4", "start it again"):
        raise error
    assert str(told.value) == f"the scheduler was lost during sweep 4 ({why}); start it again"
    assert told.value.__cause__ is error


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), StoreError("gone"), ValueError("no number")])
def test_a_task_that_failed_is_no_loss(error: Exception) -> None:
    with pytest.raises(type(error)) as told, translated_loss("the scheduler", "during sweep 4", "start it again"):
        raise error
    assert told.value is error


def test_dask_is_silent_for_as_long(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("distributed.client")
    monkeypatch.setattr(logger, "handlers", [caplog.handler])
    monkeypatch.setattr(logger, "propagate", False)
    with dask_is_silent():
        with dask_is_silent():
            logger.error("inner")
        logger.error("outer")
    logger.error("after")
    assert set(caplog.messages) == {"after"}


@pytest.mark.parametrize("name", ["distributed.batched", "distributed.nanny", "distributed.scheduler"])
def test_of_a_cluster_of_ours_dask_tells_nothing(name: str) -> None:
    told: list[str] = []

    class Terminal(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    terminal, dask = Terminal(), logging.getLogger("distributed")
    dask.addHandler(terminal)
    try:
        with dask_is_silent(altogether=True):
            logging.getLogger(name).error("in it")
        logging.getLogger(name).error("after")
    finally:
        dask.removeHandler(terminal)
    assert told == ["after"]


def test_the_client_is_silent_of_its_own_waiting_after_the_block(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio tells of an exception that nobody fetched when the task is collected, which may be at the very end."""
    loop = asyncio.new_event_loop()
    with dask_is_silent():
        pass

    def told(error: Exception) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.ERROR, "asyncio"):
            loop.call_exception_handler({"message": "Task exception was never retrieved", "exception": error})
        return [record.message.partition("\n")[0] for record in caplog.records]

    assert told(AllExit()) == []
    assert told(ValueError("ours")) == ["Task exception was never retrieved"]
    loop.close()
