"""Checkpoints of a job; each of its drivers saves to a folder of its own.

::

    .MODEL.ID.run/0001/0000-column_statistics/    a bundle, saved by the first driver
    .MODEL.ID.run/0002/0003-look/                 saved by the second, which loaded the three steps before it from 0001

A driver that was thought dead, and wakes up, is alone in its folder: two drivers never write one name. So no lock is
needed, which a stopped process could hold. If several drivers save the same step, the results have the same bits.
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

__all__ = ["JobCheckpoints", "remove_steps", "steps_saved"]

_KIND = "checkpoint"
_KEY = re.compile(r"(\d{4,})/(\d{4,})-([a-z][a-z0-9_]*)/.*")


class JobCheckpoints:
    """The checkpoints to which a `Session` saves and from which it loads.

    Parameters
    ----------
    location : location of the run's checkpoints.
    attempt : number of this driver, 1 for the first.
    digest : digest of all that determines the run's result; steps with another digest are not used.
    check : function that raises unless this driver may write.
    """

    def __init__(self, location: str, attempt: int, digest: str, check: Callable[[], None]) -> None:
        self.location, self.attempt = location, attempt
        self._digest, self._check = digest, check
        self._found = _attempts(location)

    def steps(self) -> list[tuple[int, str]]:
        """Number and name of every step that any driver has begun to save, in order."""
        return sorted(self._found)

    def save(self, step: int, name: str, state: dict[str, NDArray[Any]]) -> None:
        """Save `state` as the result of step number `step`."""
        self._check()
        bundle = Bundle(_KIND, 1, {"step": step, "name": name, "run": self._digest}, state)
        write_bundle(self._path(self.attempt, step, name), bundle)
        self._found.setdefault((step, name), []).append(self.attempt)

    def load(self, step: int, name: str) -> dict[str, NDArray[Any]] | None:
        """The state that a driver saved, or None. A torn checkpoint causes a warning and counts as absent."""
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
        """Remove the checkpoints of all drivers."""
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
    """Number of steps with a checkpoint."""
    return len(_attempts(location))


def _attempts(location: str) -> dict[tuple[int, str], list[int]]:
    found: dict[tuple[int, str], set[int]] = {}
    for key in blobs_at(location).keys(""):
        match = _KEY.fullmatch(key)
        if match:
            found.setdefault((int(match[2]), match[3]), set()).add(int(match[1]))
    return {step: sorted(attempts) for step, attempts in found.items()}
