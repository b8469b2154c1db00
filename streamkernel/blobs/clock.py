"""The clock of a place: it stamps every value written there, so the age of a value is measured by it.

The clocks of two machines can differ, and the time inside a record is that of its writer. So this module writes a small
value and reads its stamp; after that, the monotonic clock of this process gives the time that has passed.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable

from streamkernel.blobs.blobs import Blobs
from streamkernel.errors import StoreError

CLOCK = "CLOCK-"

_GOOD_FOR = 60 * 10**9  # steady clocks drift, and stop while a machine sleeps
_MOST = 256
_set: dict[str, tuple[int, int]] = {}
_guard = threading.Lock()


def place_time(blobs: Blobs, steady: Callable[[], int] = time.monotonic_ns, *, anew: bool = False) -> int | None:
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
            stamps = blobs.stamps(key)
        finally:
            blobs.remove(key)
    except StoreError:
        return 0
    return stamps[key].time if key in stamps else 0
