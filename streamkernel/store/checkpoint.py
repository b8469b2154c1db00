"""Checkpoints of one run: what each sweep ended with, so that a killed driver goes on where it was, with the same bits.

::

    .MODEL.run/run.json         the run's configuration, written first
    .MODEL.run/lock             held by the one driver; holds its process number
    .MODEL.run/0002-look/       a bundle: the state after step 2
"""

from __future__ import annotations

import os
import re
import shutil
import warnings
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import NDArray

from streamkernel.atomic import canonical_json, partial_sibling, text_digest, write_json
from streamkernel.errors import (
    CheckpointMismatchError,
    CorruptMetadataError,
    IncompleteStoreError,
    MissingChunkError,
    ModelFormatError,
    ParameterError,
    RunLockedError,
    StreamKernelWarning,
)
from streamkernel.store.bundle import Bundle, read_bundle, replace_bundle
from streamkernel.store.lock import HeldLock
from streamkernel.store.partial import remove_stray_partials, translated_os_errors
from streamkernel.store.plain import differences, plain, read_object

__all__ = ["Checkpoints"]

KIND = "checkpoint"
RUN = "run.json"
LOCK = "lock"

_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
_STEP = re.compile(r"(\d{4,})-([a-z][a-z0-9_]*)")


class Checkpoints:
    """The states that one run has saved so far; opening them makes this process the run's only driver.

    Parameters
    ----------
    folder
        Where they are kept; made if it is not there.
    config
        What determines the run's result: input fingerprint, plan, parameters, seed. Plain JSON.
    fresh
        Forget what an earlier run left here, whatever its configuration.

    Raises
    ------
    CheckpointMismatchError
        An earlier run of another configuration is here; the message lists the differing fields.
    RunLockedError
        Another driver is at work on this run; nothing was written.
    """

    def __init__(self, folder: str | os.PathLike[str], config: dict[str, Any], *, fresh: bool = False) -> None:
        self.folder = Path(os.path.abspath(folder))
        self.config: dict[str, Any] = plain(config)
        self._digest = text_digest(canonical_json(self.config))
        with translated_os_errors(self.folder, "opening checkpoints in"):
            self._lock = self._acquire()
            try:
                remove_stray_partials(self.folder)
                # Of a run that was killed while it was removing what it no longer needed.
                remove_stray_partials(self.folder.parent, self.folder.name)
                if fresh:
                    self._forget_steps()
                self._check_config()
            except BaseException:
                self._lock.release()
                raise

    def save(self, step: int, name: str, state: dict[str, NDArray[Any]]) -> None:
        """Keep `state` as what step number `step` ended with; a step saved before is replaced in one go."""
        path = self._path(step, name)
        self._check_open()
        replace_bundle(path, Bundle(KIND, 1, {"step": step, "name": name, "run": self._digest}, state))

    def load(self, step: int, name: str) -> dict[str, NDArray[Any]] | None:
        """What `save` kept, or None. A torn one is warned about and counts as absent: the step is done again."""
        path = self._path(step, name)
        self._check_open()
        if not path.exists():
            return None
        try:
            bundle = read_bundle(path, KIND)
            if bundle.config.get("run") != self._digest:
                raise ModelFormatError(f"{path} belongs to another run")
        except (IncompleteStoreError, MissingChunkError, CorruptMetadataError, ModelFormatError) as error:
            message = f"checkpoint {path.name} cannot be used and is done again ({error})"
            warnings.warn(message, StreamKernelWarning, stacklevel=2)
            return None
        return bundle.arrays

    def steps(self) -> list[tuple[int, str]]:
        """Number and name of every step that has been saved, readable or not, in order."""
        matches = (_STEP.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted((int(match[1]), match[2]) for match in matches if match)

    def discard(self) -> None:
        """Remove everything: the run is finished, or not wanted. Releases the lock."""
        self._check_open()
        with translated_os_errors(self.folder, "removing"):
            # Away in one step, so that nobody meets half a run; the lock goes with it.
            aside = partial_sibling(self.folder)
            os.rename(self.folder, aside)
            shutil.rmtree(aside, ignore_errors=True)
        self._lock.release()

    def close(self) -> None:
        """Release the lock and keep what was saved."""
        self._lock.release()

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _path(self, step: int, name: str) -> Path:
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise ParameterError(f"a checkpoint's step is a number from 0, not {step!r}")
        if not _NAME.fullmatch(name):
            raise ParameterError(f"{name!r} is no checkpoint name; use lower-case letters, digits and underscores")
        return self.folder / f"{step:04d}-{name}"

    def _check_open(self) -> None:
        if not self._lock.still_at(self.folder / LOCK):
            raise RunLockedError(f"the run in {self.folder} was closed or removed; open its checkpoints again")

    def _acquire(self) -> HeldLock:
        path = self.folder / LOCK
        while True:
            self.folder.mkdir(parents=True, exist_ok=True)
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
                    f"the run in {self.folder} is being driven by {holder}; wait for it or stop it first"
                )
            if lock.still_at(path):
                path.write_text(f"{os.getpid()}\n")
                return lock
            lock.release()

    def _forget_steps(self) -> None:
        for step, name in self.steps():
            shutil.rmtree(self._path(step, name))
        (self.folder / RUN).unlink(missing_ok=True)

    def _check_config(self) -> None:
        path = self.folder / RUN
        if path.exists():
            try:
                earlier, _ = read_object(path)
            except CorruptMetadataError:
                # Nothing was saved under it yet: nothing to protect.
                if self.steps():
                    raise
            else:
                found = list(differences(self.config, earlier.get("config")))
                if found:
                    raise CheckpointMismatchError(
                        f"the run in {self.folder} has another configuration: {'; '.join(found)};"
                        " use the same options, or start without resuming"
                    )
                return
        write_json(path, {"format": "streamkernel.run", "version": 1, "config": self.config})
