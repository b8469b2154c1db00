"""How often a place that stumbles is asked again: one schedule for every driver and operation, on drivers and workers.

Drivers must not ask again by themselves: tries within tries take minutes where nothing answers, and those of obstore
are over within a second or so where it is a matter of two.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from random import Random
from typing import TypeVar

__all__ = ["REQUEST_SECONDS", "asked_again", "http_status_passes"]

REQUEST_SECONDS = float(os.environ.get("STREAMKERNEL_STORE_TIMEOUT", "14"))
# Six tries. All of them together outlast a storm of seven seconds, and a permanent error is told within nine.
PAUSES = (0.1, 0.4, 1.2, 2.4, 4.8)
# No try begins later than this, so that one that is never answered ends within 30 s as well (docs/reliability.md).
_LATEST_START = REQUEST_SECONDS + 1.0
# Workers that were turned away at one moment do not come back at one moment.
_SPREAD = Random()

T = TypeVar("T")


def asked_again(request: Callable[[], T], passes: Callable[[BaseException], bool]) -> T:
    """The answer to a request, asked up to six times within 15 s while its errors are such as pass.

    Parameters
    ----------
    request : does no harm twice.
    passes : whether an error may be over in a moment.
    """
    began = time.monotonic()
    for pause in PAUSES:
        try:
            return request()
        except Exception as error:
            spread = pause * _SPREAD.uniform(0.8, 1.2)
            if not passes(error) or time.monotonic() - began + spread > _LATEST_START:
                raise
        time.sleep(spread)
    return request()


def http_status_passes(status: int) -> bool:
    """Whether a server that answers so may answer otherwise in a moment: too slow, too many, or its own fault."""
    return status in (408, 429) or (500 <= status < 600 and status not in (501, 505))
