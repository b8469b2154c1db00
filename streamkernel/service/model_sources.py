"""The sources of models: a folder of this machine, or a prefix in an object store.

A scan lists what may be a model, by name, with an identity that changes with every generation. It reads no model.
"""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

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
from streamkernel.wording import escaped

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")

CONFIG = "config.json"
# A URL with this prefix, or with a config, is one model itself: in the layout of generations, or as a plain copy.
_CURRENT = "CURRENT/"


def is_name(name: str) -> bool:
    """Whether a model can have this name. Unfinished outputs have a leading dot."""
    return _NAME.fullmatch(name) is not None


def printable(name: str) -> str:
    """A name for logs and answers: characters that cannot be printed are escaped, and it has 100 characters at most."""
    shown = escaped(name)
    return shown if len(shown) <= 100 else shown[:97] + "..."


@dataclass(frozen=True)
class Candidate:
    """What a scan has found under a name.

    Attributes
    ----------
    identity : identity of the generation; the next one has another.
    problem : why the identity could not be determined; there may be a new generation.
    outside : whether the name is a link that leads out of the folder.
    """

    location: Path | str
    identity: Hashable = None
    problem: StreamKernelError | None = None
    outside: bool = False

    @property
    def present(self) -> bool:
        """Whether there is, or may be, something under the name."""
        return self.identity is not None or self.problem is not None or self.outside


class ModelSource(ABC):
    """A place of models. Its calls block; the scanning thread makes them.

    Attributes
    ----------
    poll_seconds : default time between two scans.
    retry_seconds : longest pause before a generation that could not be used is tried again.
    left_out : what the last scan has left out although somebody may miss it, by name, and why.
    """

    poll_seconds: float
    retry_seconds: float

    def __init__(self) -> None:
        self.left_out: dict[str, str] = {}

    @abstractmethod
    def candidates(self) -> dict[str, Candidate]:
        """What the place has now, by name.

        Raises
        ------
        StoreError
            The place itself cannot be read; its models may be as they were.
        """

    @abstractmethod
    def is_model(self, candidate: Candidate) -> bool:
        """Whether this is a model, complete or not; other things, such as tables, may lie beside the models."""

    @abstractmethod
    def load(self, candidate: Candidate, name: str, number: int) -> LoadedModel | None:
        """Load and verify a model. None if it was replaced meanwhile: the next scan finds its successor.

        Parameters
        ----------
        number : number of the generation, counted by this service.
        """

    def message_of(self, error: Exception) -> str:
        """The message of an error, without the location of the place."""
        return without_paths(str(error)) if isinstance(error, StreamKernelError) else "it cannot be read"


class FolderSource(ModelSource):
    """A folder of models on this machine, or one model. Links are followed as long as they stay inside."""

    poll_seconds, retry_seconds = 0.4, 30.0

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._root = Path(os.path.realpath(folder))

    def candidates(self) -> dict[str, Candidate]:
        if bundle_kind(self._root) is not None:
            self.left_out = {}
            whole = self._candidate(self._root)
            return {_name_for(self._root.name): whole} if whole.identity is not None else {}
        try:
            with os.scandir(self._root) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            raise StoreError(f"the folder of models cannot be read ({error.strerror}); check the disk") from error
        found: dict[str, Candidate] = {}
        left_out: dict[str, str] = {}
        for entry in entries:
            # An entry that cannot be read does not hide the others.
            try:
                candidate = self._entry(entry)
            except OSError as error:
                candidate = _ERRNO.get(error.errno or 0) or f"it cannot be read: {error.strerror}"
            if isinstance(candidate, str):
                left_out[entry.name] = candidate
            elif candidate is not None:
                found[entry.name] = candidate
                if candidate.outside:
                    left_out[entry.name] = "a link that leads out of the folder of models"
        self.left_out = left_out
        return found

    def _entry(self, entry: os.DirEntry[str]) -> Candidate | str | None:
        """The folder's entry as a model; None if it cannot be one, or is gone; or why it is not served."""
        if entry.name.startswith("."):
            return None
        if not entry.is_dir():
            if entry.is_symlink() and not os.path.exists(entry.path):
                return "a link to nothing"
            return None
        path = self._root / entry.name
        if not is_name(entry.name):
            return _BAD_NAME if _has_config(path) else None
        candidate = self._candidate(path)
        return candidate if candidate.present else None

    def _candidate(self, path: Path) -> Candidate:
        real = Path(os.path.realpath(path))
        if real != self._root and self._root not in real.parents:
            return Candidate(path, outside=True)
        return Candidate(path, folder_generation(path))

    def is_model(self, candidate: Candidate) -> bool:
        return _has_config(Path(candidate.location))

    def load(self, candidate: Candidate, name: str, number: int) -> LoadedModel | None:
        # Resolve the link once: if it changed and changed back, another model would be read under this identity.
        path = Path(os.path.realpath(candidate.location))
        if folder_generation(path) != candidate.identity:
            return None
        served = load(path, name, number)
        replaced = folder_generation(path) != candidate.identity and bundle_kind(path) is not None
        return None if replaced else served


_BAD_NAME = "the name of a model has letters, digits and . _ - only, 200 at most, and no leading dot; rename it"
_ERRNO = {
    errno.ELOOP: "a link that leads in a circle",
    errno.EACCES: "it may not be read",
    errno.EPERM: "it may not be read",
}


def _has_config(folder: Path) -> bool:
    """Whether a folder has a model's config; raises `OSError` if that cannot be determined."""
    try:
        os.lstat(folder / CONFIG)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


class ObjectSource(ModelSource):
    """A prefix in an object store with models below it, or one model.

    A scan costs a listing of one level, and a listing and a small read for every model, four models at a time.
    """

    poll_seconds, retry_seconds = 5.0, 300.0

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url.rstrip("/")
        self._blobs = blobs_at(self._url)
        # Kept between scans, so that connections are kept, too.
        self._models: dict[str, Generations] = {}
        # Prefixes that are no models, with their identities, so that they are not read again.
        self._others: dict[str, Hashable] = {}

    def candidates(self) -> dict[str, Candidate]:
        prefixes, stamps = self._blobs.level()
        self.left_out = {}
        if _CURRENT in prefixes or CONFIG in stamps:
            urls = {_name_for(self._url.rpartition("/")[2]): self._url}
        else:
            names = [prefix.rstrip("/") for prefix in prefixes]
            urls = {name: joined(self._url, name) for name in names if is_name(name)}
            # To find out whether it is a model would take a request in every scan.
            others = (name for name in names if not is_name(name) and not name.startswith("."))
            self.left_out = dict.fromkeys(others, f"if it is a model: {_BAD_NAME}")
        self._models = {url: self._generations(url) for url in urls.values()}
        self._others = {url: identity for url, identity in self._others.items() if url in self._models}
        silent: list[StoreError] = []
        found = dict(zip(urls, at_once(lambda url: self._candidate(url, silent), urls.values()), strict=True))
        return {name: candidate for name, candidate in found.items() if candidate.present}

    def _candidate(self, url: str, silent: list[StoreError]) -> Candidate:
        if silent:
            # The store stopped answering during this scan: every further request would take as long to fail.
            return Candidate(url, problem=silent[0])
        try:
            return Candidate(url, self._models[url].identity())
        except StreamKernelError as error:
            if type(error) is StoreError:
                silent.append(error)
            return Candidate(url, problem=error)

    def _generations(self, url: str) -> Generations:
        return self._models.get(url) or Generations(url)

    def is_model(self, candidate: Candidate) -> bool:
        url = str(candidate.location)
        if self._others.get(url) == candidate.identity:
            return False
        found = self._generations(url).read(CONFIG, 1) is not None
        if not found:
            self._others[url] = candidate.identity
        return found

    def load(self, candidate: Candidate, name: str, number: int) -> LoadedModel | None:
        if is_foreign(str(candidate.location)):
            # Another program's output is not fetched: the beginning of its config is enough to refuse it.
            raise ModelFormatError(f"{name} is not a saved model: its {CONFIG} is not one of ours")
        # If the model is replaced meanwhile, what is read is complete, and the next scan finds its successor.
        try:
            return load(candidate.location, name, number)
        except ModelFormatError:
            # The kind is read first: a model of another kind may have come between the two.
            if self._generations(str(candidate.location)).identity() != candidate.identity:
                return None
            raise

    def message_of(self, error: Exception) -> str:
        # The driver's messages contain the endpoint.
        return _WORDS.get(type(error)) or super().message_of(error)


_WORDS: dict[type[Exception], str] = {
    StoreError: "the object store does not answer",
    StoreAccessError: "the object store refuses the credentials of this service",
    StoreNotFoundError: "the object store does not have it, or not any more",
}


def _name_for(name: str) -> str:
    """A valid name for a single model, made from the name of its folder or prefix."""
    return (re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".") or "model")[:200]


def source_of(root: str | os.PathLike[str]) -> ModelSource:
    """The place at a path or URL.

    Raises
    ------
    ParameterError
        No installed driver knows the URL, the place cannot be listed, or it is a chain of URLs.
    """
    text = os.fspath(root)
    if "::" in text:
        raise ParameterError(f"{text} is a chain of URLs; give a folder, or a URL such as s3://bucket/models")
    if not is_url(text):
        return FolderSource(local_path(text))
    if not blobs_at(text).listable:
        raise ParameterError(f"what is at {text} cannot be listed; give a folder, or a URL such as s3://bucket/models")
    return ObjectSource(text)
