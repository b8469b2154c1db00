"""The clock of a place: it stamps every value written there, so the age of a value is measured by it.

The clocks of two machines can differ, and the time inside a record is that of its writer. So this module writes a small
value and reads its stamp; after that, a steady clock of this machine gives the time that has passed.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable

from streamkernel.blobs.blobs import Blobs
from streamkernel.errors import StoreError

CLOCK = "CLOCK-"

_GOOD_FOR = 60 * 10**9  # steady clocks drift
_MOST = 256
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the latter does not stand still on other systems
_STRAY_NS = 3600 * 10**9
_set: dict[str, tuple[int, int]] = {}
_guard = threading.Lock()


def steady_seconds() -> float:
    """Seconds since some moment. They also pass while this machine sleeps, and nobody can set them.

    `time.monotonic` stands still on Linux while a laptop is closed: a lease that others have taken meanwhile would seem
    to be held.
    """
    return time.clock_gettime(_STEADY)


def _steady_ns() -> int:
    return time.clock_gettime_ns(_STEADY)


def place_time(blobs: Blobs, steady: Callable[[], int] = _steady_ns, *, anew: bool = False) -> int | None:
    """The time at a place, in ns, by its stamps; None if it gives no times or cannot be written.

    With `anew` the place is asked now: its clock may have been set since the last time.
    """
    with _guard:
        known = _set.get(blobs.location)
        if anew or known is None or not 0 <= steady() - known[1] < _GOOD_FOR:
            sent = steady()
            stamp = _stamp(blobs)
            if not stamp:
                return None
            if len(_set) >= _MOST:
                _set.clear()
            known = _set[blobs.location] = (stamp, sent)
        return known[0] + steady() - known[1]


def _stamp(blobs: Blobs) -> int:
    key = f"{CLOCK}{uuid.uuid4().hex}"
    try:
        blobs.write(key, b"")
        try:
            stamps = blobs.stamps(CLOCK)
        finally:
            blobs.remove(key)
        now = stamps[key].time if key in stamps else 0
        # Processes that were killed between the two have left theirs.
        blobs.remove_all([each for each, stamp in stamps.items() if 0 < stamp.time < now - _STRAY_NS])
    except StoreError:
        return 0
    return now
