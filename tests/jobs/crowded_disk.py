"""A full disk: records find no room on it, until something is removed."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from streamkernel.blobs import LocalBlobs, store_error

__all__ = ["CrowdedDisk"]


class CrowdedDisk:
    """Each value takes one place, and each that is removed gives it back.

    Attributes
    ----------
    room : values that it still takes.
    shared : whether others take at once what is given back.
    """

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.room, self.shared = 0, False
        written, remove, remove_below = LocalBlobs._written, LocalBlobs.remove, LocalBlobs.remove_below

        def writing(blobs: LocalBlobs, key: str, value: bytes) -> Any:
            if not self.room and value:
                error = OSError(errno.ENOSPC, "No space left on device")
                raise store_error(error, blobs.folder / key, "writing") from error
            self.room -= 1
            return written(blobs, key, value)

        def removed(blobs: LocalBlobs, key: str) -> None:
            self._given_back(int(blobs.size(key) > 0))
            remove(blobs, key)

        def removed_below(blobs: LocalBlobs, prefix: str = "") -> None:
            self._given_back(len(blobs.keys(prefix)))
            remove_below(blobs, prefix)

        for name, function in (("_written", writing), ("remove", removed), ("remove_below", removed_below)):
            patched.setattr(LocalBlobs, name, function)

    def _given_back(self, number: int) -> None:
        self.room += 0 if self.shared else number
