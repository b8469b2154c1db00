"""Where the checkpoints of a run are: below a URL, with a lease, or in a folder, with a locked file."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from streamkernel.atomic import HeldLock, json_content, partial_sibling
from streamkernel.blobs import Lock, PathLock, blobs_at, lease_of
from streamkernel.blobs.lease import this_process
from streamkernel.errors import RunLockedError
from streamkernel.outputs import make_own_folder, remove_any, remove_stray_partials
from streamkernel.store.plain import parse_object
from streamkernel.type_aliases import Fields

RUN = "run.json"
LOCK = "lock"
ROWS = "rows"  # folder of values of every row that sweeps have written for later ones
# These three, steps, and the remains of writers that were killed while they wrote either.
_OURS = re.compile(
    rf"{re.escape(RUN)}|{LOCK}|{ROWS}|\d{{4,}}-[a-z][a-z0-9_]*"
    r"|\.(run\.json|\d{4,}-[a-z][a-z0-9_]*)\.[0-9a-f]{8}\.(partial|new|former)"
)
_HOLDER = re.compile(r"\d+( on [\w.-]+)?")  # earlier releases wrote no host


class RunStorage:
    """The run that this process drives; creating it takes the lock, or raises `RunLockedError` if another has it.

    Attributes
    ----------
    lock : lock of the run's one driver.
    """

    lock: Lock

    def __init__(self, location: str | Path) -> None:
        self.location = location
        self._blobs = blobs_at(location)
        self.lock = self._acquire()

    def _acquire(self) -> Lock:
        busy = f"the run in {self.location} is being driven by another process; wait for it or stop it first"
        return lease_of(self._blobs, LOCK, busy)

    def names(self) -> list[str]:
        """Names of all entries."""
        # Not `level`: some file systems of fsspec keep the empty folders of removed steps.
        return sorted({key.partition("/")[0] for key in self._blobs.keys("")})

    def description(self) -> Fields | None:
        """The description of the run; None if there is none."""
        content = self._blobs.read(RUN)
        return None if content is None else parse_object(content, f"{self.location}/{RUN}", "start without resuming")

    def write_description(self, run: Fields) -> None:
        """Write the description of the run."""
        self._blobs.write(RUN, json_content(run))

    def remove_steps(self, names: list[str]) -> None:
        """Remove steps and the description of the run."""
        # The description first: without it, nobody tries to resume from the rest.
        self._blobs.remove(RUN)
        for name in names:
            self._remove(name)

    def discard(self) -> None:
        """Remove everything, and release the lock."""
        self._blobs.remove(RUN)
        # The last records of the lease stay: two drivers that come at once need them to agree on an order.
        self._blobs.remove_all([key for key in self._blobs.keys("") if not key.startswith(f"{LOCK}/")])
        self.lock.release()

    def withdraw(self) -> None:
        """Release the lock of a run that could not begin."""
        self.lock.release()

    def _remove(self, name: str) -> None:
        self._blobs.remove_below(f"{name}/")


class RunFolder(RunStorage):
    """A folder of this machine, or of a disk that it shares."""

    location: Path

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        try:
            remove_stray_partials(folder)
            # Remains of a run that was killed while it removed its folder.
            remove_stray_partials(folder.parent, folder.name)
        except BaseException:
            self.withdraw()
            raise

    def _acquire(self) -> PathLock:
        path = self.location / LOCK
        held = HeldLock.acquire_current(path, create=True, prepare=lambda: make_own_folder(self.location))
        if held is None:
            holder = "another process"
            # Of a process of another machine on a shared disk the number alone would mislead.
            with suppress(OSError, ValueError):
                if _HOLDER.fullmatch(text := path.read_text().strip()):
                    holder = f"process {text}"
            raise RunLockedError(
                f"the run in {self.location} is being driven by {holder}; wait for it or stop it first"
            )
        lock = PathLock(held, path, f"the run in {self.location} was closed or removed; open its checkpoints again")
        try:
            held.write("{process} on {host}\n".format(**this_process()).encode())
        except OSError:
            self.lock = lock
            self.withdraw()
            raise
        return lock

    def names(self) -> list[str]:
        # Links too: what is not ours must be seen.
        return os.listdir(self.location)

    def discard(self) -> None:
        if all(map(_OURS.fullmatch, self.names())):
            # Rename first, in one step, so that no other driver finds half a run; the lock moves with the folder.
            aside = partial_sibling(self.location)
            try:
                os.rename(self.location, aside)
                shutil.rmtree(aside, ignore_errors=True)
            except BaseException:  # a signal in the middle: nobody else would remove the rest
                shutil.rmtree(aside, ignore_errors=True)
                raise
        else:
            # Somebody stores other files here: these stay, and so does the folder.
            ours = [name for name in self.names() if _OURS.fullmatch(name)]
            self.remove_steps([name for name in ours if name not in (RUN, LOCK)])
            (self.location / LOCK).unlink(missing_ok=True)
        self.lock.release()

    def withdraw(self) -> None:
        """Release the lock, and remove the folder if it holds only the lock."""
        with suppress(OSError, RunLockedError):
            self.lock.check()
            if self.names() == [LOCK]:
                (self.location / LOCK).unlink()
                self.location.rmdir()
        self.lock.release()

    def _remove(self, name: str) -> None:
        remove_any(self.location / name)


def run_storage(location: str | Path) -> RunStorage:
    """The run at a URL (text) or in a folder; the lock is taken."""
    return RunStorage(location) if isinstance(location, str) else RunFolder(location)
