"""Where models are: a folder of this machine, or a place in an object store.

A look tells what may be a model, by name, and what tells one generation of it from the next. It reads no model.
"""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

import psutil

from streamkernel.atomic import folder_generation
from streamkernel.blobs import Generations, at_once, blobs_at, is_url, joined, local_path
from streamkernel.errors import (
    ModelFormatError,
    ParameterError,
    StoreAccessError,
    StoreError,
    StoreNotFoundError,
    StreamKernelError,
)
from streamkernel.service.http_errors import without_paths
from streamkernel.service.loaded_model import LoadedModel, load
from streamkernel.store import bundle_kind, is_foreign
from streamkernel.store.objects import fetched, fetched_text

__all__ = ["ModelSource", "Seen", "is_name", "printable", "source_of"]

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")

CONFIG = "config.json"
# At a URL whose own content is one output, in this layout or as a plain copy.
_CURRENT = "CURRENT/"


def is_name(name: str) -> bool:
    """Whether a model can have this name; a leading dot is for what is not finished."""
    return _NAME.fullmatch(name) is not None


def printable(name: str) -> str:
    """A name that somebody else has given, for logs and answers: what is no character to look at is escaped."""
    told = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
    return told if len(told) <= 100 else told[:97] + "..."


@dataclass(frozen=True)
class Seen:
    """What a look has found under a name.

    Attributes
    ----------
    identity : what tells this generation from the next.
    problem : why that could not be told; there may be a new one.
    outside : a link that leads out of the folder.
    """

    location: Path | str
    identity: Hashable = None
    problem: StreamKernelError | None = None
    outside: bool = False


class ModelSource(ABC):
    """Blocking calls, for the one thread that follows the models.

    Attributes
    ----------
    poll_seconds : between two looks, unless the operator says otherwise.
    retry_seconds : the longest pause before a generation that could not be used is tried again.
    left_out : what the last look has passed over though somebody may miss it, by name, and why.
    """

    poll_seconds: float
    retry_seconds: float

    def __init__(self) -> None:
        self.left_out: dict[str, str] = {}

    @abstractmethod
    def look(self) -> dict[str, Seen]:
        """What is there now, by name.

        Raises
        ------
        StoreError
            The place itself cannot be seen, which says nothing of what is in it.
        """

    @abstractmethod
    def is_model(self, seen: Seen) -> bool:
        """Whether it claims to be a model, whole or not; others, such as tables, may lie beside the models."""

    @abstractmethod
    def load(self, seen: Seen, name: str, number: int) -> LoadedModel | None:
        """The model, verified; None if it was replaced meanwhile, so that the next look must tell what it is.

        Parameters
        ----------
        number : of the generation, as this service counts.
        """

    def told(self, error: Exception) -> str:
        """An error in words that tell nothing of where the place is."""
        return without_paths(str(error)) if isinstance(error, StreamKernelError) else "it cannot be read"


class FolderSource(ModelSource):
    """A folder of this machine, or one model in it; links are followed as long as they stay below it."""

    poll_seconds, retry_seconds = 0.4, 30.0

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._root = Path(os.path.realpath(folder))

    def look(self) -> dict[str, Seen]:
        if bundle_kind(self._root) is not None:
            self.left_out = {}
            whole = self._seen(self._root)
            return {_name_for(self._root.name): whole} if whole.identity is not None else {}
        try:
            with os.scandir(self._root) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            raise StoreError(f"the folder of models cannot be seen ({error.strerror}); check the disk") from error
        found: dict[str, Seen] = {}
        left_out: dict[str, str] = {}
        for entry in entries:
            # One that cannot be looked at says nothing of the others.
            try:
                seen = self._entry(entry)
            except (OSError, _LeftOut) as error:
                left_out[entry.name] = _why_not(error)
                continue
            if seen is not None:
                found[entry.name] = seen
                if seen.outside:
                    left_out[entry.name] = "a link that leads out of the folder of models"
        self.left_out = left_out
        return found

    def _entry(self, entry: os.DirEntry[str]) -> Seen | None:
        """What it is; None for what nobody takes for a model, or is gone."""
        if entry.name.startswith("."):
            return None
        if not entry.is_dir():
            if entry.is_symlink() and not os.path.exists(entry.path):
                raise _LeftOut("a link to nothing")
            return None
        path = self._root / entry.name
        if not is_name(entry.name):
            if _has_config(path):
                raise _LeftOut(_BAD_NAME)
            return None
        seen = self._seen(path)
        return seen if seen.identity is not None or seen.outside else None

    def _seen(self, path: Path) -> Seen:
        real = Path(os.path.realpath(path))
        if real != self._root and self._root not in real.parents:
            return Seen(path, outside=True)
        return Seen(path, folder_generation(path))

    def is_model(self, seen: Seen) -> bool:
        return bundle_kind(seen.location) is not None or _has_config(Path(seen.location))

    def load(self, seen: Seen, name: str, number: int) -> LoadedModel | None:
        # Where the link leads, once: one changed and changed back gives another model under this identity.
        path = Path(os.path.realpath(seen.location))
        if folder_generation(path) != seen.identity:
            return None
        served = load(path, name, number)
        replaced = folder_generation(path) != seen.identity and bundle_kind(path) is not None
        return None if replaced else served


class _LeftOut(Exception):
    """Why something is no model of ours."""


_BAD_NAME = "the name of a model has letters, digits and . _ - only, 200 at most, and no leading dot; rename it"
_ERRNO = {
    errno.ELOOP: "a link that leads in a circle",
    errno.EACCES: "it may not be read",
    errno.EPERM: "it may not be read",
}


def _why_not(error: OSError | _LeftOut) -> str:
    if isinstance(error, _LeftOut):
        return str(error)
    return _ERRNO.get(error.errno or 0) or f"it cannot be looked at: {error.strerror}"


def _has_config(folder: Path) -> bool:
    """Whether a folder has what a model has; raises where that cannot be told."""
    try:
        os.lstat(folder / CONFIG)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


class ObjectSource(ModelSource):
    """A prefix in an object store with models below it, or one model.

    A look costs a listing of one level, and a listing and a small read for every model, four models at a time.
    """

    poll_seconds, retry_seconds = 5.0, 300.0

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url.rstrip("/")
        self._blobs = blobs_at(self._url)
        # Kept, so that connections are.
        self._models: dict[str, Generations] = {}
        # What has proved to be no model, with its identity: nobody has to read that again.
        self._others: dict[str, Hashable] = {}

    def look(self) -> dict[str, Seen]:
        prefixes, stamps = self._blobs.level()
        self.left_out = {}
        if _CURRENT in prefixes or CONFIG in stamps:
            urls = {_name_for(self._url.rpartition("/")[2]): self._url}
        else:
            names = [prefix.rstrip("/") for prefix in prefixes]
            urls = {name: joined(self._url, name) for name in names if is_name(name)}
            # Whether it is a model is not worth a request at every look.
            others = (name for name in names if not is_name(name) and not name.startswith("."))
            self.left_out = dict.fromkeys(others, f"if it is a model: {_BAD_NAME}")
        self._models = {url: self._models.get(url) or Generations(url) for url in urls.values()}
        self._others = {url: identity for url, identity in self._others.items() if url in self._models}
        silent: list[StoreError] = []
        found = dict(zip(urls, at_once(lambda url: self._seen(url, silent), urls.values()), strict=True))
        return {name: seen for name, seen in found.items() if seen.identity is not None or seen.problem is not None}

    def _seen(self, url: str, silent: list[StoreError]) -> Seen:
        if silent:
            # The store was lost in the middle of the look: every other request would take as long as that one.
            return Seen(url, problem=silent[0])
        try:
            return Seen(url, self._models[url].identity())
        except StreamKernelError as error:
            if type(error) is StoreError:
                silent.append(error)
            return Seen(url, problem=error)

    def is_model(self, seen: Seen) -> bool:
        url = str(seen.location)
        if self._others.get(url) == seen.identity:
            return False
        found = fetched_text(url, CONFIG, 1) is not None
        if not found:
            self._others[url] = seen.identity
        return found

    def load(self, seen: Seen, name: str, number: int) -> LoadedModel | None:
        if is_foreign(str(seen.location)):
            # Of somebody else's output nothing but its beginning is fetched.
            raise ModelFormatError(f"{name} is not a saved model: its {CONFIG} is not one of ours")
        # If it is replaced meanwhile, what is fetched is whole, and its successor is seen by the next look.
        with fetched(str(seen.location), psutil.virtual_memory().total) as folder:
            return load(folder, name, number)

    def told(self, error: Exception) -> str:
        # The driver's words have the endpoint in them.
        return _WORDS.get(type(error)) or super().told(error)


_WORDS: dict[type[Exception], str] = {
    StoreError: "the object store does not answer",
    StoreAccessError: "the object store refuses the credentials of this service",
    StoreNotFoundError: "the object store does not have it, or not any more",
}


def _name_for(name: str) -> str:
    """The name of a single model, whatever it is called there."""
    return (re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".") or "model")[:200]


def source_of(root: str | os.PathLike[str]) -> ModelSource:
    """The place at a path or URL.

    Raises
    ------
    ParameterError
        A URL that no installed driver knows, or of a place that cannot be listed; a chain of URLs.
    """
    text = os.fspath(root)
    if "::" in text:
        raise ParameterError(f"{text} is a chain of URLs; give a folder, or a URL such as s3://bucket/models")
    if not is_url(text):
        return FolderSource(local_path(text))
    if not blobs_at(text).listable:
        raise ParameterError(f"what is at {text} cannot be listed; give a folder, or a URL such as s3://bucket/models")
    return ObjectSource(text)
