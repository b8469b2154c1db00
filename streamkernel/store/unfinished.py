"""The folder of an output that survives its builder: after kill -9, the next builder goes on with the finished chunks.

::

    .NAME.unfinished/run.json           its description: fingerprint, shapes, dtypes, chunks; digests of the metadata
    .NAME.unfinished/1f3a9c20/          the output so far; without COMPLETE, nobody reads it
    .NAME.unfinished/1f3a9c20.journal/  its finished chunks

Every new start chooses a new random name, so that a late task of an aborted run does not find its folder. The folder
is locked (flock) while a process builds in it.
"""

from __future__ import annotations

import re
import shutil
import uuid
import warnings
from pathlib import Path
from typing import Any

from streamkernel.atomic import text_digest, write_json
from streamkernel.errors import (
    CheckpointMismatchError,
    CorruptMetadataError,
    RunLockedError,
    StoreExistsError,
    StreamKernelWarning,
)
from streamkernel.manifest import COMPLETE
from streamkernel.outputs import Kind, publish, refuse_link, remove_stray_partials, translated_os_errors
from streamkernel.store.arrays import ZARR_JSON, list_files
from streamkernel.store.journal import Journal
from streamkernel.store.lock import HeldLock
from streamkernel.store.plain import differences, read_object

__all__ = ["UnfinishedFolder"]

RUN = "run.json"
FORMAT = "streamkernel.unfinished"

_NAME = re.compile(r"[0-9a-f]{8}")
_OURS = re.compile(r"[0-9a-f]{8}(\.journal)?|run\.json|\.run\.json\.[0-9a-f]{8}\.partial")


class UnfinishedFolder:
    """A folder in which `target` is built; it stays until `publish` gives it its name.

    Parameters
    ----------
    target
        Path of the output.
    kind
        Kind of the output; it decides which existing output it may replace.
    config
        All that determines the output, plain JSON.
    resume
        Whether to go on with the unfinished output of an earlier builder of the same configuration, if there is one;
        otherwise that is removed.

    Attributes
    ----------
    path
        Folder of the output so far.
    resumed
        Whether an earlier builder began it. If not, the builder writes the metadata and calls `begin`.
    journal
        Journal of its finished chunks.

    Raises
    ------
    CheckpointMismatchError
        The configuration of the earlier builder differs; the message lists the fields.
    RunLockedError
        Another process is building it now; nothing was changed.
    """

    def __init__(self, target: Path, kind: Kind, config: dict[str, Any], *, resume: bool) -> None:
        self.target, self._kind = target, kind
        self.folder = target.with_name(f".{target.name}.unfinished")
        self._config = config
        with translated_os_errors(target, "creating"):
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_stray_partials(target.parent, target.name)
            self._lock = self._acquire()
            try:
                earlier = self._earlier() if resume else None
                name = earlier or uuid.uuid4().hex[:8]
                self.resumed = earlier is not None
                self.path = self.folder / name
                self.journal = Journal(self.folder / f"{name}.journal")
                if earlier is None:
                    self._clear()
                    self.path.mkdir()
                else:
                    list_files(self.path)  # no links: chunks are written into its folders
                self.journal.folder.mkdir(exist_ok=True)
                refuse_link(self.journal.folder)
                # A former `finish` may have stopped after COMPLETE: a folder that is still written must not look whole.
                (self.path / COMPLETE).unlink(missing_ok=True)
            except BaseException:
                self._lock.release()
                raise

    def begin(self) -> None:
        """Mark the folder as resumable, once its metadata are written."""
        write_json(
            self.folder / RUN,
            {"format": FORMAT, "version": 1, "name": self.path.name, "config": self._config, "metadata": self._pin()},
        )

    def publish(self, *, overwrite: bool = False) -> None:
        """Give the finished output its name; with `overwrite`, an existing output is replaced in one step."""
        publish(self.path, self.target, self._kind, overwrite=overwrite)
        with translated_os_errors(self.target, "publishing"):
            if all(_OURS.fullmatch(path.name) for path in self.folder.iterdir()):
                shutil.rmtree(self.folder)
            else:
                # Somebody has stored other files here: these stay.
                (self.folder / RUN).unlink(missing_ok=True)
                shutil.rmtree(self.journal.folder)
        self._lock.release()

    def abandon(self) -> None:
        """Release the lock. Finished chunks stay for the next builder."""
        self._lock.release()

    def _earlier(self) -> str | None:
        """Checked name of the folder that an earlier builder left; None if there is none to resume."""
        run = self.folder / RUN
        if not run.exists():
            return None
        earlier, _ = read_object(run)
        name = earlier.get("name")
        if earlier.get("format") != FORMAT or not isinstance(name, str) or not _NAME.fullmatch(name):
            raise CorruptMetadataError(f"{run} is not as it was written; start without resuming")
        found = list(differences(self._config, earlier.get("config")))
        if found:
            raise CheckpointMismatchError(
                f"the unfinished {self.target.name} in {self.folder} has another configuration: {'; '.join(found)};"
                " use the same options, or start without resuming"
            )
        self.path = self.folder / name
        if not self.path.is_dir():
            # Published, but its builder died before it removed the rest.
            return None
        if self._pin() != earlier.get("metadata"):
            # Damaged; or the replaced output, which publishing moves here for a moment.
            message = f"the unfinished {self.target.name} in {self.folder} is damaged and is written anew"
            warnings.warn(message, StreamKernelWarning, stacklevel=2)
            return None
        return name

    def _pin(self) -> dict[str, str]:
        """Digest of every metadata file of the group and its arrays."""
        files = [self.path / ZARR_JSON, *sorted(self.path.glob(f"*/{ZARR_JSON}"))]
        return {
            str(file.relative_to(self.path)): text_digest(file.read_bytes().decode("utf-8", "replace"))
            for file in files
            if file.is_file()
        }

    def _clear(self) -> None:
        # The description first: without it, nobody tries to resume from the rest.
        for path in self.folder.iterdir():
            if not _OURS.fullmatch(path.name):
                raise StoreExistsError(
                    f"{self.folder} is where {self.target.name} is built, and it holds {path.name!r}, which "
                    "streamkernel did not write; move that away"
                )
        (self.folder / RUN).unlink(missing_ok=True)
        for path in self.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _acquire(self) -> HeldLock:
        while True:
            self.folder.mkdir(exist_ok=True)
            refuse_link(self.folder)
            try:
                lock = HeldLock.acquire(self.folder)
            except FileNotFoundError:
                # Another builder published between the two lines: make the folder again.
                continue
            if lock is None:
                raise RunLockedError(f"{self.target} is being written by another process; wait for it or stop it first")
            if lock.still_at(self.folder):
                return lock
            lock.release()
