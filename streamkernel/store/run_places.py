"""Places of the checkpoints of a run: a folder with a locked file, or a prefix at a URL with a lease."""

from __future__ import annotations

import json
import os
import re
import shutil
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamkernel.atomic import parsed_json, partial_sibling, write_json
from streamkernel.blobs import Lease, blobs_at, joined
from streamkernel.errors import CorruptMetadataError, RunLockedError
from streamkernel.outputs import refuse_link, remove_stray_partials
from streamkernel.store.lock import HeldLock
from streamkernel.store.plain import read_object

__all__ = ["TTL", "FolderRun", "ObjectRun", "RunPlace"]

RUN = "run.json"
LOCK = "lock"
# These two, steps, and the remains of writers that were killed while they wrote either.
_OURS = re.compile(
    rf"{re.escape(RUN)}|{LOCK}|\d{{4,}}-[a-z][a-z0-9_]*"
    r"|\.(run\.json|\d{4,}-[a-z][a-z0-9_]*)\.[0-9a-f]{8}\.(partial|new|former)"
)
# Time to live of the lease, in seconds: a silent driver counts as alive for that long.
TTL = 15.0


class RunPlace(ABC):
    """The run that this process drives; creating it takes the lock, or raises `RunLockedError` if another has it."""

    location: str | Path

    @abstractmethod
    def check_held(self) -> None:
        """Raise `RunLockedError` unless this process is still the driver."""

    @abstractmethod
    def step(self, name: str) -> str | Path:
        """Path or URL of a step's bundle."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether a step was saved."""

    @abstractmethod
    def names(self) -> list[str]:
        """Names of all entries."""

    @abstractmethod
    def forget(self, names: list[str]) -> None:
        """Remove steps and the description of the run."""

    @abstractmethod
    def described(self) -> dict[str, Any] | None:
        """The description of the run; None if there is none."""

    @abstractmethod
    def describe(self, run: dict[str, Any]) -> None:
        """Write the description of the run."""

    @abstractmethod
    def discard(self) -> None:
        """Remove everything, and release the lock."""

    @abstractmethod
    def release(self) -> None:
        """Release the lock."""

    def withdraw(self) -> None:
        """Release the lock of a run that could not begin."""
        self.release()

    def forsake(self) -> None:
        """Release the lock without a request to a place that does not answer."""
        self.release()


class FolderRun(RunPlace):
    """A folder of this machine, or of a disk that it shares."""

    location: Path

    def __init__(self, folder: Path) -> None:
        self.location = folder
        self._lock = self._acquire()
        try:
            remove_stray_partials(folder)
            # Remains of a run that was killed while it removed its folder.
            remove_stray_partials(folder.parent, folder.name)
        except BaseException:
            self.withdraw()
            raise

    def _acquire(self) -> HeldLock:
        path = self.location / LOCK
        while True:
            self.location.mkdir(parents=True, exist_ok=True)
            refuse_link(self.location)
            try:
                lock = HeldLock.acquire(path, create=True)
            except FileNotFoundError:
                # Another driver removed the folder between the two lines: make it again.
                continue
            if lock is None:
                holder = "another process"
                with suppress(OSError, ValueError):
                    holder = f"process {int(path.read_text())}"
                raise RunLockedError(
                    f"the run in {self.location} is being driven by {holder}; wait for it or stop it first"
                )
            if lock.still_at(path):
                try:
                    lock.write(f"{os.getpid()}\n".encode())
                except OSError:
                    self._withdraw(lock)
                    raise
                return lock
            lock.release()

    def check_held(self) -> None:
        if not self._lock.still_at(self.location / LOCK):
            raise RunLockedError(f"the run in {self.location} was closed or removed; open its checkpoints again")

    def step(self, name: str) -> Path:
        return self.location / name

    def has(self, name: str) -> bool:
        return (self.location / name).exists()

    def names(self) -> list[str]:
        return [path.name for path in self.location.iterdir()]

    def forget(self, names: list[str]) -> None:
        for name in names:
            shutil.rmtree(self.location / name)
        (self.location / RUN).unlink(missing_ok=True)

    def described(self) -> dict[str, Any] | None:
        path = self.location / RUN
        return read_object(path)[0] if path.exists() else None

    def describe(self, run: dict[str, Any]) -> None:
        write_json(self.location / RUN, run)

    def discard(self) -> None:
        strangers = [name for name in self.names() if not _OURS.fullmatch(name)]
        if strangers:
            # Somebody stores other files here: these stay, and so does the folder.
            self.forget([name for name in self.names() if name not in (*strangers, RUN, LOCK)])
            (self.location / LOCK).unlink(missing_ok=True)
            self._lock.release()
            return
        # Rename first, in one step, so that no other driver finds half a run; the lock moves with the folder.
        aside = partial_sibling(self.location)
        os.rename(self.location, aside)
        shutil.rmtree(aside, ignore_errors=True)
        self._lock.release()

    def release(self) -> None:
        self._lock.release()

    def withdraw(self) -> None:
        self._withdraw(self._lock)

    def _withdraw(self, lock: HeldLock) -> None:
        """Release the lock, and remove the folder if it holds only the lock."""
        with suppress(OSError):
            if lock.still_at(self.location / LOCK) and self.names() == [LOCK]:
                (self.location / LOCK).unlink()
                self.location.rmdir()
        lock.release()


class ObjectRun(RunPlace):
    """Objects below a URL, with a lease.

    If another driver has the lease, this watches up to 16.5 s whether it renews it, and takes it if it does not.
    """

    location: str

    def __init__(self, url: str) -> None:
        self.location = url
        self._blobs = blobs_at(url)
        lease = Lease.acquire(self._blobs, LOCK, ttl=TTL, wait=1.1 * TTL, while_silent=True)
        if lease is None:
            raise RunLockedError(f"the run in {url} is being driven by another process; wait for it or stop it first")
        self._lease = lease

    def check_held(self) -> None:
        self._lease.check()

    def step(self, name: str) -> str:
        return joined(self.location, name)

    def has(self, name: str) -> bool:
        return self._blobs.holds(f"{name}/")

    def names(self) -> list[str]:
        return sorted({key.partition("/")[0] for key in self._blobs.stamps()})

    def forget(self, names: list[str]) -> None:
        # The description first: without it, nobody tries to resume from the rest.
        self._blobs.remove(RUN)
        for name in names:
            self._remove(f"{name}/")

    def described(self) -> dict[str, Any] | None:
        content = self._blobs.read(RUN)
        if content is None:
            return None
        try:
            run = parsed_json(content)
        except (ValueError, RecursionError) as error:
            raise CorruptMetadataError(f"{self.location}/{RUN} is not JSON; start without resuming") from error
        return run if isinstance(run, dict) else {}

    def describe(self, run: dict[str, Any]) -> None:
        self._blobs.write(RUN, json.dumps(run, indent=1, allow_nan=False).encode())

    def discard(self) -> None:
        self.check_held()
        self._blobs.remove(RUN)
        self._remove("", f"{LOCK}/")
        # The last records of the lease stay: two drivers that come at once need them to agree on an order.
        self._lease.release()

    def release(self) -> None:
        self._lease.release()

    def forsake(self) -> None:
        self._lease.forsake()

    def _remove(self, prefix: str, but: str | None = None) -> None:
        keys = self._blobs.keys(prefix)
        self._blobs.remove_all([key for key in keys if but is None or not key.startswith(but)])
