"""Errors that may pass while a store is followed, and how long to wait for that."""

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

__all__ = ["Trouble", "may_pass"]

_FIRST, _LONGEST = 0.25, 30.0
# Rows that have changed in a foreign store may be rows that are being written; not if it is said so often in a row.
_SURE = 4

_LASTING = (ModelFormatError, StoreExistsError, CheckpointMismatchError, SecurityError)
_LASTING_AT_FIRST = (StoreNotFoundError, StoreAccessError, ClusterError)


def may_pass(error: Exception, *, begun: bool, moved: bool, foreign: bool, times: int) -> bool:
    """Whether it is worth while to try again.

    Parameters
    ----------
    begun : whether it went well before: where nothing is at the path from the first, the path is wrong.
    moved : whether store or model were replaced by other processes meanwhile.
    foreign : whether the store is none that `ingest` made; then rows may be seen before they are whole.
    times : how often in a row something has gone wrong.
    """
    if isinstance(error, _LASTING) or (not begun and isinstance(error, _LASTING_AT_FIRST)):
        return False
    if isinstance(error, InputChangedError):
        return moved or (foreign and times < _SURE)
    if isinstance(error, NonFiniteDataError):
        # Fill values, until the rows are written.
        return foreign
    return isinstance(error, (StoreError, ClusterError, OSError)) and not isinstance(error, MemoryError)


class Trouble:
    """What has gone wrong in a row: how often, since when, and how long to wait now.

    Parameters
    ----------
    patience : seconds after which an error does not count as passing any more.
    """

    def __init__(self, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience, self._clock = patience, clock
        self._since: float | None = None
        self.times = 0

    def again(self) -> float | None:
        """Seconds to wait after another failure; None once patience is at its end."""
        now = self._clock()
        if self._since is None:
            self._since = now
        self.times += 1
        left = self._since + self._patience - now
        if left <= 0:
            return None
        return min(_FIRST * 2.0 ** min(self.times - 1, 20), _LONGEST, left)

    def over(self) -> bool:
        """It went well; whether it had not before."""
        had = self.times > 0
        self._since, self.times = None, 0
        return had
