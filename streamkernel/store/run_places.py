"""Where the checkpoints of a run are kept: a folder with a locked file, or a prefix at a URL with a lease."""

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
# The two, steps, and what killed writers have left of either.
_OURS = re.compile(
    rf"{re.escape(RUN)}|{LOCK}|\d{{4,}}-[a-z][a-z0-9_]*"
    r"|\.(run\.json|\d{4,}-[a-z][a-z0-9_]*)\.[0-9a-f]{8}\.(partial|new|former)"
)
# Seconds for which a driver is believed to be alive.
TTL = 15.0


class RunPlace(ABC):
    """The run that this process drives; made by taking its lock, `RunLockedError` where another has that."""

    location: str | Path

    @abstractmethod
    def check_held(self) -> None:
        """Raise `RunLockedError` unless this process still is the driver."""

    @abstractmethod
    def step(self, name: str) -> str | Path:
        """Where a step's bundle is."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether a step is there."""

    @abstractmethod
    def names(self) -> list[str]:
        """Of everything that is there."""

    @abstractmethod
    def forget(self, names: list[str]) -> None:
        """Remove steps, and what is said of the run."""

    @abstractmethod
    def described(self) -> dict[str, Any] | None:
        """What was said of the run; None if nothing was."""

    @abstractmethod
    def describe(self, run: dict[str, Any]) -> None:
        """Say it."""

    @abstractmethod
    def discard(self) -> None:
        """Remove everything, and let go."""

    @abstractmethod
    def release(self) -> None:
        """Let go."""

    def withdraw(self) -> None:
        """Let go of a run that could not begin."""
        self.release()

    def forsake(self) -> None:
        """Let go without a word where the place does not answer."""
        self.release()


class FolderRun(RunPlace):
    """A folder of this machine, or of a disk that it shares."""

    location: Path

    def __init__(self, folder: Path) -> None:
        self.location = folder
        self._lock = self._acquire()
        try:
            remove_stray_partials(folder)
            # Of a run that was killed while it was removing what it no longer needed.
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
                # Another driver discarded the folder between the two lines: make it again.
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
            # Somebody keeps other things here: they stay, and so does the folder.
            self.forget([name for name in self.names() if name not in (*strangers, RUN, LOCK)])
            (self.location / LOCK).unlink(missing_ok=True)
            self._lock.release()
            return
        # Away in one step, so that nobody meets half a run; the lock goes with it.
        aside = partial_sibling(self.location)
        os.rename(self.location, aside)
        shutil.rmtree(aside, ignore_errors=True)
        self._lock.release()

    def release(self) -> None:
        self._lock.release()

    def withdraw(self) -> None:
        self._withdraw(self._lock)

    def _withdraw(self, lock: HeldLock) -> None:
        """Let go, and leave no folder in which there is nothing but the lock."""
        with suppress(OSError):
            if lock.still_at(self.location / LOCK) and self.names() == [LOCK]:
                (self.location / LOCK).unlink()
                self.location.rmdir()
        lock.release()


class ObjectRun(RunPlace):
    """Objects below a URL. Whoever finds the lease taken watches whether its holder lives: for 16 s, if it does not."""

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
        # The run first: without it nothing of the rest is taken for something to go on with.
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
        # The last records of the lease stay: by them, two who come at once agree on an order.
        self._lease.release()

    def release(self) -> None:
        self._lease.release()

    def forsake(self) -> None:
        self._lease.forsake()

    def _remove(self, prefix: str, but: str | None = None) -> None:
        keys = self._blobs.keys(prefix)
        self._blobs.remove_all([key for key in keys if but is None or not key.startswith(but)])
