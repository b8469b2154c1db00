"""An output that survives its builder: after kill -9, the next builder goes on with the finished chunks.

::

    .NAME.unfinished/run.json           its description: fingerprint, shapes, dtypes, chunks; digests of the metadata
    .NAME.unfinished/1f3a9c20/          the output so far; without COMPLETE, nobody reads it
    .NAME.unfinished/1f3a9c20.journal/  its finished chunks

    URL/UNFINISHED/run.json             the same at a URL
    URL/generations/1f3a9c20b7d4/
    URL/UNFINISHED/1f3a9c20b7d4/
    URL/UNFINISHED/LEASE/               lease of its builder; a folder is locked (flock) instead

Every new start chooses a new random name, so that a late task of an aborted run does not find its folder.
"""

from __future__ import annotations

import re
import shutil
import uuid
from abc import abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import TypeGuard

from streamkernel.atomic import HeldLock, json_content
from streamkernel.blobs import (
    Blobs,
    LocalBlobs,
    Lock,
    PathLock,
    blobs_at,
    content_digest,
    joined,
    lease_of,
    translated_os_errors,
)
from streamkernel.errors import (
    CorruptMetadataError,
    RunLockedError,
    StoreError,
    StoreExistsError,
    warn_user,
)
from streamkernel.manifest import COMPLETE
from streamkernel.outputs import (
    Building,
    GenerationBuilding,
    Kind,
    make_own_folder,
    publish,
    remove_any,
    remove_stray_partials,
)
from streamkernel.store._arrays import ZARR_JSON, list_files
from streamkernel.store._journal import Journal, LogJournal, ObjectJournal
from streamkernel.store.plain import parse_object, require_equal
from streamkernel.type_aliases import Fields

RUN = "run.json"
FORMAT = "streamkernel.unfinished"

_OURS = re.compile(r"[0-9a-f]{8}(\.journal)?|run\.json|\.run\.json\.[0-9a-f]{8}\.partial")


class Unfinished(Building):
    """The output that this process builds; it stays until `publish` gives it its name.

    Parameters
    ----------
    target
        Path or URL of the output.
    config
        All that determines the output, plain JSON; ``config["arrays"]`` has the names of its arrays.
    resume
        Whether to go on with the unfinished output of an earlier builder of the same configuration, if there is one;
        otherwise that is removed.

    Attributes
    ----------
    resumed
        Whether an earlier builder began it. If not, the builder writes the metadata and calls `begin`.
    name, journal
        Random name of the output so far; journal of its finished chunks.

    Raises
    ------
    CheckpointMismatchError
        The configuration of the earlier builder differs; the message lists the fields.
    RunLockedError
        Another process is building it now; nothing was changed.
    """

    name: str
    journal: Journal
    _state: Blobs  # the place of run.json
    _letters: int  # of a name

    def __init__(self, target: str | Path, config: Fields, *, resume: bool) -> None:
        self.target, self._config = target, config
        self._lock = self._acquire(f"{target} is being written by another process; wait for it or stop it first")
        try:
            self.resumed = resume and self._found_earlier()
            if not self.resumed:
                self._clear()
                self._use(uuid.uuid4().hex[: self._letters])
            self._prepare()
            if self.resumed:
                # A former `publish` may have stopped after COMPLETE: what is still written must not look whole.
                self.blobs.remove(self.prefix + COMPLETE)
        except BaseException:
            self._lock.release()
            raise

    def begin(self) -> None:
        """Mark the output as resumable, once its metadata are written."""
        run = {"name": self.name, "config": self._config, "metadata": self._metadata_digests()}
        self._state.write(RUN, json_content({"format": FORMAT, "version": 1, **run}))

    def publish(self, complete: bytes, *, overwrite: bool = False) -> None:
        self._lock.check()
        self._publish(complete, overwrite)
        self._forget()
        self._lock.release()

    def abandon(self) -> None:
        """Release the lock. Finished chunks stay for the next builder."""
        with suppress(StoreError):  # a lease expires by itself
            self._lock.release()

    def withdraw(self) -> None:
        """Build nothing after all: remove this output, and with it what earlier builders left."""
        self._forget()
        self._lock.release()

    def _found_earlier(self) -> bool:
        """Whether an earlier builder left an output to resume, which then is this one."""
        content = self._state.read(RUN)
        if content is None:
            return False
        where = f"{self._state.location}/{RUN}"
        run = parse_object(content, where, "start without resuming")
        name = run.get("name")
        if run.get("format") != FORMAT or not self._is_name(name):
            raise CorruptMetadataError(f"{where} is not as it was written; start without resuming")
        require_equal(self._config, run.get("config"), f"the unfinished output {self.target}")
        if not self._use(name):
            # Published, but its builder died before it removed the rest.
            return False
        if self._metadata_digests() != run.get("metadata"):
            # Damaged; or the replaced output, which publishing moves here for a moment.
            warn_user(f"the unfinished output {self.target} is damaged and is written anew")
            return False
        return True

    def _is_name(self, name: object) -> TypeGuard[str]:
        return isinstance(name, str) and re.fullmatch(rf"[0-9a-f]{{{self._letters}}}", name) is not None

    def _metadata_digests(self) -> dict[str, str]:
        """Digest of every metadata file of the group and its arrays."""
        names = [ZARR_JSON, *(f"{name}/{ZARR_JSON}" for name in self._config["arrays"])]
        contents = {name: self.blobs.read(self.prefix + name) for name in names}
        return {name: content_digest(content) for name, content in contents.items() if content is not None}

    @abstractmethod
    def _acquire(self, busy: str) -> Lock:
        """Take the lock; if another builder has it, raise `RunLockedError` with this message."""

    @abstractmethod
    def _use(self, name: str) -> bool:
        """Let this be the output of this name; return whether it is there, and not published."""

    def _prepare(self) -> None:
        """Make what is not there yet; raise `StoreError` if there are links, through which chunks would be written."""
        return

    @abstractmethod
    def _clear(self) -> None:
        """Remove the unfinished outputs of earlier builders."""

    @abstractmethod
    def _publish(self, complete: bytes, overwrite: bool) -> None:
        """Give the output its name."""

    @abstractmethod
    def _forget(self) -> None:
        """Remove the description and the journal of the published output."""


class UnfinishedFolder(Unfinished):
    """A folder beside the target; `kind` decides which existing output it may replace."""

    target: Path
    journal: LogJournal
    prefix = ""
    _letters = 8

    def __init__(self, target: Path, kind: Kind, config: Fields, *, resume: bool) -> None:
        self._kind = kind
        self._around = target.with_name(f".{target.name}.unfinished")
        self._state = LocalBlobs(self._around)
        with translated_os_errors(target, "creating"):
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_stray_partials(target.parent, target.name)
            super().__init__(target, config, resume=resume)

    def _acquire(self, busy: str) -> Lock:
        held = HeldLock.acquire_current(self._around, prepare=lambda: make_own_folder(self._around))
        if held is None:
            raise RunLockedError(busy)
        return PathLock(held, self._around, f"{self._around} was removed while {self.target} was built; run again")

    def _use(self, name: str) -> bool:
        self.name, self.folder = name, self._around / name
        self.blobs = LocalBlobs(self.folder)
        self.journal = LogJournal(self._around / f"{name}.journal")
        return self.folder.is_dir()

    def _prepare(self) -> None:
        self.folder.mkdir(exist_ok=True)
        list_files(self.folder)
        make_own_folder(self.journal.folder)

    def _clear(self) -> None:
        for path in self._around.iterdir():
            if not _OURS.fullmatch(path.name):
                raise StoreExistsError(
                    f"{self._around} is where {self.target.name} is built, and it holds {path.name!r}, which "
                    "streamkernel did not write; move that away"
                )
        # The description first: without it, nobody tries to resume from the rest.
        self._state.remove(RUN)
        for path in self._around.iterdir():
            remove_any(path)

    def _publish(self, complete: bytes, overwrite: bool) -> None:
        self.blobs.write(COMPLETE, complete)
        publish(self.folder, self.target, self._kind, overwrite=overwrite)

    def _forget(self) -> None:
        with translated_os_errors(self.target, "publishing"):
            if all(_OURS.fullmatch(path.name) for path in self._around.iterdir()):
                shutil.rmtree(self._around)
            else:
                # Somebody has stored other files here: these stay.
                self._state.remove(RUN)
                shutil.rmtree(self.journal.folder)


class UnfinishedGeneration(Unfinished):
    """A generation at a URL."""

    target: str
    _letters = 12

    def __init__(self, target: str, config: Fields, *, resume: bool) -> None:
        self._state = blobs_at(joined(target, "UNFINISHED"))
        super().__init__(target, config, resume=resume)

    def _acquire(self, busy: str) -> Lock:
        return lease_of(self._state, "LEASE", busy)

    def _use(self, name: str) -> bool:
        self.name, self._generation = name, GenerationBuilding(self.target, name)
        self.blobs, self.prefix = self._generation.blobs, self._generation.prefix
        self.journal = ObjectJournal(self._state, f"{name}/")
        return not self._generation.is_current()

    def _clear(self) -> None:
        content = self._state.read(RUN)
        # The description first: without it, nobody tries to resume from the rest.
        self._state.remove(RUN)
        with suppress(CorruptMetadataError):
            name = parse_object(content or b"", RUN).get("name")
            if self._is_name(name):
                GenerationBuilding(self.target, name).remove()
                self._state.remove_below(f"{name}/")

    def _publish(self, complete: bytes, overwrite: bool) -> None:
        self._generation.publish(complete, overwrite=overwrite)

    def _forget(self) -> None:
        self._state.remove(RUN)
        self._state.remove_below(f"{self.name}/")


def unfinished_at(target: str | Path, kind: Kind, config: Fields, *, resume: bool) -> Unfinished:
    """The unfinished output at a path, or at a URL (text)."""
    if isinstance(target, str):
        return UnfinishedGeneration(target, config, resume=resume)
    return UnfinishedFolder(target, kind, config, resume=resume)
