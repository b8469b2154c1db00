"""Temporary errors of a follower: which errors are temporary, and how long to wait before the next attempt."""

from __future__ import annotations

import time
from collections.abc import Callable

from streamkernel.errors import (
    CheckpointMismatchError,
    ClusterError,
    InputChangedError,
    ModelFormatError,
    NonFiniteDataError,
    SecurityError,
    StoreAccessError,
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
)

_FIRST, _LONGEST = 0.25, 30.0
# Changed rows in a foreign store may be rows that are being written; not after this number of errors in a row.
_SURE = 4

_LASTING = (ModelFormatError, StoreExistsError, CheckpointMismatchError, SecurityError)
_LASTING_AT_FIRST = (StoreNotFoundError, StoreAccessError, ClusterError)


def is_temporary(error: Exception, *, begun: bool, moved: bool, foreign: bool, times: int) -> bool:
    """Whether an error is temporary, so that another attempt may succeed.

    Parameters
    ----------
    begun : whether an earlier attempt succeeded; where nothing was ever at the path, the path is wrong.
    moved : whether other processes replaced the store or the model during the attempt.
    foreign : whether the store was not made by `ingest`; its rows may then be visible before they are complete.
    times : number of failures in a row.
    """
    if isinstance(error, _LASTING) or (not begun and isinstance(error, _LASTING_AT_FIRST)):
        return False
    if isinstance(error, InputChangedError):
        return moved or (foreign and times < _SURE)
    if isinstance(error, NonFiniteDataError):
        # Rows that are not written yet have fill values, which may be NaN.
        return foreign
    return isinstance(error, (StoreError, ClusterError, OSError)) and not isinstance(error, MemoryError)


class ErrorStreak:
    """The failures in a row: their number, their start, and the time to wait now.

    Parameters
    ----------
    patience : seconds after which an error no longer counts as temporary.
    """

    def __init__(self, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience, self._clock = patience, clock
        self._since: float | None = None
        self.times = 0

    def again(self) -> float | None:
        """Count another failure; return the seconds to wait, or None after `patience` seconds."""
        now = self._clock()
        if self._since is None:
            self._since = now
        self.times += 1
        left = self._since + self._patience - now
        if left <= 0:
            return None
        return min(_FIRST * 2.0 ** min(self.times - 1, 20), _LONGEST, left)

    def over(self) -> bool:
        """Count a success; return whether there were failures before it."""
        had = self.times > 0
        self._since, self.times = None, 0
        return had
