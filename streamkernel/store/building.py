"""An output of rows under construction: on a disk or at a URL, temporary or resumable by another process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from streamkernel.outputs import Kind, PartialFolder
from streamkernel.store.row_places import FolderRows, RowPlace
from streamkernel.store.unfinished import UnfinishedFolder
from streamkernel.store.unfinished_objects import PartialObjects, UnfinishedObjects

__all__ = ["Building", "building_of"]


class Building(Protocol):
    """The part of a `RowSink` that stays with its creator and is never sent to tasks.

    Attributes
    ----------
    target : path or URL of the output.
    rows : place of its chunks; it is sent to the tasks.
    resumed : whether an earlier builder had begun the output. If not, the creator writes the metadata, then calls
        `begin`.
    noted : digests of finished chunks, by their keys.
    """

    @property
    def target(self) -> str | Path: ...

    @property
    def rows(self) -> RowPlace: ...

    @property
    def resumed(self) -> bool: ...

    @property
    def noted(self) -> dict[str, set[str]]: ...

    def begin(self) -> None: ...

    def publish(self, complete: bytes, *, overwrite: bool) -> None: ...

    def abandon(self) -> None: ...


class _Partial:
    """A folder that is removed unless the output is published."""

    resumed = False

    def __init__(self, target: Path, kind: Kind) -> None:
        self.target = target
        self._folder = PartialFolder(target, kind)
        self.rows = FolderRows(self._folder.path, None)
        self.noted: dict[str, set[str]] = {}

    def begin(self) -> None:
        return

    def publish(self, complete: bytes, *, overwrite: bool) -> None:
        self._folder.publish(overwrite=overwrite)

    def abandon(self) -> None:
        self._folder.abandon()


class _Unfinished:
    """A folder that stays until the output is published."""

    def __init__(self, target: Path, kind: Kind, config: dict[str, Any], *, resume: bool) -> None:
        self.target = target
        self._folder = UnfinishedFolder(target, kind, config, resume=resume)
        self.rows = FolderRows(self._folder.path, self._folder.journal)
        self.resumed, self.begin, self.abandon = self._folder.resumed, self._folder.begin, self._folder.abandon

    @property
    def noted(self) -> dict[str, set[str]]:
        return self._folder.journal.entries()

    def publish(self, complete: bytes, *, overwrite: bool) -> None:
        self._folder.publish(overwrite=overwrite)


def building_of(target: str | Path, kind: Kind, config: dict[str, Any] | None, *, resume: bool) -> Building:
    """Begin or resume the output at a path, or at a URL (text); with a configuration, it outlives its builder."""
    if isinstance(target, str):
        return PartialObjects(target) if config is None else UnfinishedObjects(target, config, resume=resume)
    return _Partial(target, kind) if config is None else _Unfinished(target, kind, config, resume=resume)
