"""Checkpoints of a job; each of its drivers saves to a folder of its own.

::

    .MODEL.ID.run/0001/0000-column_statistics/    a bundle, saved by the first driver
    .MODEL.ID.run/0002/0003-look/                 saved by the second, which loaded the three steps before it from 0001

A driver that was thought dead, and wakes up, is alone in its folder: two drivers never write one name. So no lock is
needed, which a stopped process could hold. If several drivers save the same step, the results have the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

from streamkernel.blobs import blobs_at, joined
from streamkernel.errors import StoreNotFoundError
from streamkernel.store import read_step, step_bundle, write_bundle
from streamkernel.type_aliases import AnyArray

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

    @property
    def rows_folder(self) -> None:
        """None: drivers on several machines share no folder for values of rows."""
        return None

    def save(self, step: int, name: str, state: dict[str, AnyArray]) -> None:
        """Save `state` as the result of step number `step`."""
        self._check()
        write_bundle(self._path(self.attempt, step, name), step_bundle(step, name, self._digest, state))
        self._found.setdefault((step, name), []).append(self.attempt)

    def load(self, step: int, name: str) -> dict[str, AnyArray] | None:
        """The state that a driver saved, or None. A torn checkpoint causes a warning and counts as absent."""
        for attempt in sorted(self._found.get((step, name), ()), reverse=True):
            path = self._path(attempt, step, name)
            with suppress(StoreNotFoundError):
                bundle = read_step(path, path)
                if bundle is not None and bundle.config.get("run") == self._digest:
                    return bundle.arrays
        return None

    def remove(self) -> None:
        """Remove the checkpoints of all drivers."""
        remove_steps(self.location)

    def _path(self, attempt: int, step: int, name: str) -> str:
        return joined(self.location, f"{attempt:04d}", f"{step:04d}-{name}")


def remove_steps(location: str) -> None:
    """Remove the checkpoints of a run, if there are any."""
    blobs_at(location).remove_below()


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
