"""The models of a folder, followed while they come, change and go.

Models are replaced by a rename (`streamkernel.atomic`), so that one look at each folder's identity tells what is new.
A new generation is read, verified and warmed beside the one that is served, and then takes its place in one step; a
request keeps the one that it began with. A generation that cannot be used is reported, and the one before it stays.

Names of requests are looked up among those that were found, and never become paths.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamkernel.atomic import folder_generation
from streamkernel.errors import StreamKernelError
from streamkernel.service.refusals import Refused, without_paths
from streamkernel.service.served import Served, load
from streamkernel.store import bundle_kind

__all__ = ["Entry", "Registry", "is_name"]

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")

# Looks at which a folder must be gone before its model is: a rename in two steps leaves none for a moment.
_GONE_FOR = 2
_FIRST_RETRY, _LAST_RETRY = 1.0, 30.0

Identity = tuple[int, int, int]


def is_name(name: str) -> bool:
    """Whether a model can have this name; a leading dot is for what is not finished."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True)
class Entry:
    """What is known of one name.

    Attributes
    ----------
    served : what answers; None before the first generation that could be read.
    error : of the newest generation, with its type; None where that is what is served.
    outside : a link that leads out of the folder.
    """

    name: str
    served: Served | None = None
    identity: Identity | None = None
    error: tuple[str, str] | None = None
    outside: bool = False
    loaded: float = 0.0
    retry_after: float = _FIRST_RETRY
    retry_at: float = 0.0
    missed: int = 0


class Registry:
    """Parameters
    ----------
    root : the folder, or one model.
    changed : told ``(event, name)``; events are "loaded", "reloaded", "failed" and "removed".
    """

    def __init__(self, root: Path, changed: Callable[[str, str], None] = lambda event, name: None) -> None:
        self._root = Path(os.path.realpath(root))
        self._changed = changed
        # Replaced as a whole by the one thread that scans, so that readers need no lock.
        self._entries: dict[str, Entry] = {}
        self.scanned = 0.0

    @property
    def entries(self) -> dict[str, Entry]:
        """By name, in the order of names."""
        return self._entries

    def served(self, name: str) -> Served:
        """The model of a name.

        Raises
        ------
        Refused
        """
        entry = self._entries.get(name)
        if entry is not None and entry.served is not None:
            return entry.served
        raise self._refusal(name, entry)

    def entry(self, name: str) -> Entry:
        """What is known of a name.

        Raises
        ------
        Refused
        """
        entry = self._entries.get(name)
        if entry is None or entry.outside:
            raise self._refusal(name, entry)
        return entry

    def _refusal(self, name: str, entry: Entry | None) -> Refused:
        if not is_name(name):
            return Refused(
                403, "the name of a model has letters, digits and . _ - only, and no leading dot", "ForbiddenName"
            )
        if entry is None:
            return Refused(404, f"there is no model {name!r}; GET /v1/models lists them", "UnknownModel")
        if entry.outside:
            return Refused(403, f"{name} is a link that leads out of the folder of models", "ForbiddenName")
        kind, message = entry.error or ("Overloaded", "it is being read")
        return Refused(503, f"{name} cannot be served: {message}", kind)

    def scan(self) -> None:
        """Look at the folder once, and read what is new. One thread at a time."""
        now = time.monotonic()
        found = self._found()
        if found is None:
            return  # the folder itself cannot be seen: what is served goes on
        for name in sorted(self._entries.keys() - found.keys()):
            entry = self._entries[name]
            if entry.missed + 1 < _GONE_FOR and entry.served is not None:
                self._set(_with(entry, missed=entry.missed + 1))
            else:
                self._entries = {key: value for key, value in self._entries.items() if key != name}
                self._changed("removed", name)
        for name, path in found.items():
            self._look(name, path, now)
        self.scanned = time.time()

    def _found(self) -> dict[str, Path] | None:
        if bundle_kind(self._root) is not None:
            name = re.sub(r"[^A-Za-z0-9._-]", "_", self._root.name).lstrip(".") or "model"
            return {name[:200]: self._root}
        try:
            with os.scandir(self._root) as listed:
                names = sorted(entry.name for entry in listed if entry.is_dir())
        except OSError:
            return None
        return {name: self._root / name for name in names if is_name(name)}

    def _look(self, name: str, path: Path, now: float) -> None:
        entry = self._entries.get(name) or Entry(name)
        real = Path(os.path.realpath(path))
        if real != self._root and self._root not in real.parents:
            if not entry.outside:
                self._set(Entry(name, outside=True))
            return
        identity = folder_generation(path)
        if identity is None:
            return
        known = identity == entry.identity and not entry.outside
        if known and (entry.error is None or now < entry.retry_at):
            if entry.missed:
                self._set(_with(entry, missed=0))
            return
        if bundle_kind(path) is None and entry.served is None and not (path / "config.json").exists():
            return  # a folder of something else, such as tables
        before = entry.served
        try:
            served = load(path, name, 1 if before is None else before.generation + 1)
        except (StreamKernelError, OSError, ArithmeticError, ValueError, KeyError, TypeError) as error:
            kind = type(error).__name__
            message = without_paths(str(error)) if isinstance(error, StreamKernelError) else "it cannot be read"
            wait = min(2 * entry.retry_after, _LAST_RETRY) if known else _FIRST_RETRY
            if not known:
                self._changed("failed", name)
            self._set(
                _with(entry, identity=identity, error=(kind, message), outside=False, missed=0,
                      retry_after=wait, retry_at=now + wait)
            )  # fmt: skip
            return
        if folder_generation(path) != identity and bundle_kind(path) is not None:
            return  # replaced while it was read: the next look takes it
        self._set(Entry(name, served, identity, loaded=time.time()))
        self._changed("loaded" if before is None else "reloaded", name)

    def _set(self, entry: Entry) -> None:
        self._entries = dict(sorted({**self._entries, entry.name: entry}.items()))


def _with(entry: Entry, **changes: Any) -> Entry:
    return Entry(**{**entry.__dict__, **changes})
