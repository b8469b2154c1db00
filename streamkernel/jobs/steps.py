"""Checkpoints of a job, to which each of its drivers adds in a folder of its own.

::

    .MODEL.ID.run/0001/0000-column_statistics/    a bundle, by the first driver
    .MODEL.ID.run/0002/0003-look/                 by the second, which read the three before it in 0001

A driver that was thought dead, and wakes, meets nobody in its folder: two never write one name, so that no lock is
needed that a stopped process could keep. What several of them make of one step has the same bits.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from streamkernel.blobs import blobs_at, is_url, joined, local_path
from streamkernel.errors import (
    CorruptMetadataError,
    IncompleteStoreError,
    MissingChunkError,
    ModelFormatError,
    StoreNotFoundError,
    warn_user,
)
from streamkernel.store import Bundle, read_bundle, write_bundle

__all__ = ["Steps", "remove_steps", "steps_saved"]

_KIND = "checkpoint"
_KEY = re.compile(r"(\d{4,})/(\d{4,})-([a-z][a-z0-9_]*)/.*")


class Steps:
    """What a `Session` saves to and loads from.

    Parameters
    ----------
    location : of the run.
    attempt : number of this driver.
    digest : of what determines the run's result; steps of another one are not used.
    check : raises unless this driver may write.
    """

    def __init__(self, location: str, attempt: int, digest: str, check: Callable[[], None]) -> None:
        self.location, self.attempt = location, attempt
        self._digest, self._check = digest, check
        self._found = _attempts(location)

    def steps(self) -> list[tuple[int, str]]:
        """Number and name of every step that any driver has begun to save, in order."""
        return sorted(self._found)

    def save(self, step: int, name: str, state: dict[str, NDArray[Any]]) -> None:
        """Keep `state` as what step number `step` ended with."""
        self._check()
        bundle = Bundle(_KIND, 1, {"step": step, "name": name, "run": self._digest}, state)
        write_bundle(self._path(self.attempt, step, name), bundle)
        self._found.setdefault((step, name), []).append(self.attempt)

    def load(self, step: int, name: str) -> dict[str, NDArray[Any]] | None:
        """What a driver saved, or None. A torn one is warned about and counts as absent."""
        for attempt in sorted(self._found.get((step, name), ()), reverse=True):
            path = self._path(attempt, step, name)
            try:
                bundle = read_bundle(path, _KIND)
                if bundle.config.get("run") == self._digest:
                    return bundle.arrays
            except StoreNotFoundError:
                continue
            except (IncompleteStoreError, MissingChunkError, CorruptMetadataError, ModelFormatError) as error:
                warn_user(f"checkpoint {path} cannot be used and is done again ({error})")
        return None

    def remove(self) -> None:
        """Remove those of all drivers."""
        remove_steps(self.location)

    def _path(self, attempt: int, step: int, name: str) -> str:
        return joined(self.location, f"{attempt:04d}", f"{step:04d}-{name}")


def remove_steps(location: str) -> None:
    """Remove the checkpoints of a run, if there are any."""
    if is_url(location):
        blobs = blobs_at(location)
        for key in blobs.keys(""):
            blobs.remove(key)
    else:
        shutil.rmtree(local_path(location), ignore_errors=True)


def steps_saved(location: str) -> int:
    """How many steps there are checkpoints of."""
    return len(_attempts(location))


def _attempts(location: str) -> dict[tuple[int, str], list[int]]:
    found: dict[tuple[int, str], set[int]] = {}
    for key in blobs_at(location).keys(""):
        match = _KEY.fullmatch(key)
        if match:
            found.setdefault((int(match[2]), match[3]), set()).add(int(match[1]))
    return {step: sorted(attempts) for step, attempts in found.items()}
