"""The place where a store is built, and the step that publishes it: a folder beside it, or objects at a URL."""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

from streamkernel.blobs import Generation, Generations, Layer, content_digest, normalised, upload
from streamkernel.errors import InputChangedError, StoreError, StoreExistsError
from streamkernel.manifest import COMPLETE
from streamkernel.outputs import PartialFolder, plain_copy

__all__ = ["FolderOutlet", "GrownOutlet", "ObjectOutlet", "Outlet", "outlet_of"]


class Outlet(ABC):
    """Files are built in `folder`; `publish` makes them the store, `close` removes them if they were not published."""

    folder: Path

    def shipped(self, key: str) -> None:
        """Called when a chunk's file is complete."""
        return

    def fetched(self, key: str) -> None:
        """Make sure that a chunk's file is in `folder` again."""
        return

    @abstractmethod
    def publish(self, *, overwrite: bool) -> None:
        """Give the store its name, after all files, COMPLETE included, are written."""

    def close(self) -> None:
        """Remove the files if they were not published."""
        shutil.rmtree(self.folder, ignore_errors=True)


class FolderOutlet(Outlet):
    """A folder beside the store, which takes its name in one step."""

    def __init__(self, target: Path) -> None:
        self._partial = PartialFolder(target, "table")
        self.folder = self._partial.path

    def publish(self, *, overwrite: bool) -> None:
        self._partial.publish(overwrite=overwrite)

    def close(self) -> None:
        self._partial.abandon()


class GrownOutlet(Outlet):
    """The next generation of a locked table, with links to the unchanged chunks."""

    def __init__(self, target: Path) -> None:
        self._partial = PartialFolder(target, "table")
        self.folder = self._partial.path

    def publish(self, *, overwrite: bool) -> None:
        self._partial.succeed()

    def close(self) -> None:
        self._partial.abandon()


class ObjectOutlet(Outlet):
    """A generation at a URL. This disk holds one chunk at a time, and the metadata until the end.

    Parameters
    ----------
    url : URL of the store.
    grown : the generation to which rows are appended; None for a new store.
    first : number of the first chunk to write anew.
    """

    def __init__(self, url: str, grown: Generation | None = None, first: int = 0) -> None:
        self.url = url
        self._place = Generations(url)
        self._grown = grown
        before = () if grown is None else grown.layers
        self._layers = (*(layer for layer in before if layer.first < first), Layer(self._place.new_name(), first))
        self._around = Path(tempfile.mkdtemp(prefix="streamkernel-"))
        self.folder = self._around / "store"
        self._published = False
        self._silent = False  # the store did not answer: `close` does not try to clear up

    @property
    def _prefix(self) -> str:
        return self._layers[-1].prefix

    def shipped(self, key: str) -> None:
        file = self.folder / key
        try:
            self._place.blobs.write(self._prefix + key, file.read_bytes())
        except StoreError as error:
            self._silent = type(error) is StoreError
            raise
        file.unlink()

    def fetched(self, key: str) -> None:
        content = self._place.blobs.read(self._prefix + key)
        assert content is not None, "we have written it"
        (self.folder / key).write_bytes(content)

    def publish(self, *, overwrite: bool) -> None:
        upload(self.folder, self._place.blobs, self._prefix, last=COMPLETE)
        digest = content_digest((self.folder / COMPLETE).read_bytes())
        if self._grown is not None:
            done = self._place.publish(self._layers, digest, after=self._grown)
            if done is None:
                raise InputChangedError(
                    f"{self.url} was replaced while rows were being appended to it; nothing was appended: run again"
                )
        elif overwrite:
            self._place.replace(self._layers, digest, plain_copy(self._place))
        elif self._place.publish(self._layers, digest, after=None) is None:
            raise StoreExistsError(f"{self.url} exists; choose another path or ask for overwrite")
        self._published = True

    def close(self) -> None:
        shutil.rmtree(self._around, ignore_errors=True)
        if not self._published and not self._silent:
            with suppress(StoreError):
                self._place.discard(self._layers[-1].name)


def outlet_of(target: str | os.PathLike[str]) -> Outlet:
    """The outlet of a new store at a path or URL."""
    place = normalised(target)
    return ObjectOutlet(place) if isinstance(place, str) else FolderOutlet(place)
