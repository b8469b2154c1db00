"""Checkpoints of a job; each of its drivers saves to a folder of its own.

::

    .MODEL.ID.run/0001/0000-column_statistics/    a bundle, saved by the first driver
    .MODEL.ID.run/0002/0003-look/                 saved by the second, which loaded the three steps before it from 0001

A driver that was thought dead, and wakes up, is alone in its folder: two drivers never write one name. So no lock is
needed, which a stopped process could hold. If several drivers save the same step, the results have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from streamkernel.blobs import joined
from streamkernel.errors import StoreNotFoundError
from streamkernel.jobs._steps import attempts_at, remove_steps
from streamkernel.store import read_step, step_bundle, write_bundle
from streamkernel.type_aliases import AnyArray


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
        self._found = attempts_at(location)

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
