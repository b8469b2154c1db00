"""Retries of requests to a place: one schedule for every storage driver and operation, in the run's driver and workers.

Storage drivers must not retry by themselves: nested retries take minutes if nothing answers, and obstore's own retries
end after about a second, when the place needs two.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

REQUEST_SECONDS = float(os.environ.get("STREAMKERNEL_STORE_TIMEOUT", "14"))
CONNECT_SECONDS = 4.0
# Six tries. Together they outlast an outage of seven seconds; a permanent error is raised within nine.
PAUSES = (0.1, 0.4, 1.2, 2.4, 4.8)
# No try begins later than this, so that a request without any answer also ends within 30 s (docs/reliability.md).
_LATEST_START = REQUEST_SECONDS + 1.0
# Random pauses: workers that were refused at the same moment do not all retry at the same moment.
_SPREAD = Random()

T = TypeVar("T")


def with_retries(
    request: Callable[[], T], passes: Callable[[BaseException], bool], pauses: Sequence[float] | None = None
) -> T:
    """The answer to a request, which is tried up to six times within 15 s while its errors are temporary.

    A try counts for `REQUEST_SECONDS` at most, when storage drivers end it: a process that was stopped meanwhile
    (Ctrl-Z, a batch system that suspends jobs) finds its request given up when it goes on, and asks again.

    Parameters
    ----------
    request : the request; it may safely be sent twice.
    passes : returns whether an error may be temporary.
    pauses : seconds between two tries; a disk needs fewer than a network.
    """
    spent = 0.0
    for pause in PAUSES if pauses is None else pauses:
        began = time.monotonic()
        try:
            return request()
        except Exception as error:
            spread = pause * _SPREAD.uniform(0.8, 1.2)
            spent += min(time.monotonic() - began, REQUEST_SECONDS) + spread
            if not passes(error) or spent > _LATEST_START:
                raise
        time.sleep(spread)
    return request()


def http_status_passes(status: int) -> bool:
    """Whether an HTTP status may be temporary: a timeout, too many requests, or a server error."""
    return status in (408, 429) or (500 <= status < 600 and status not in (501, 505))
