"""The served models: found in a folder or URL, and reloaded when they change.

A model is replaced in one step (`streamkernel.atomic`, `streamkernel.blobs.generations`), so its identity shows whether
it is new. A new generation is read, verified and warmed while the old one is served, and then replaces it in one step.
A request keeps the generation that it began with. A generation that cannot be used is reported, and the one before it
is served on. If the place itself cannot be read, that is reported too, and all models are served on: they are stale.

The name in a request is looked up among the names that were found; it never becomes part of a path.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from streamkernel.errors import StreamKernelError
from streamkernel.service.http_errors import Refused
from streamkernel.service.loaded_model import LoadedModel
from streamkernel.service.model_sources import Candidate, is_name, printable, source_of

# Scans in a row that must miss a folder before its model is removed: a rename in two steps leaves none for a moment.
_GONE_FOR = 2
_FIRST_RETRY = 1.0
_MOST_LINES = 20  # log lines, for what one scan leaves out

log = logging.getLogger("streamkernel.service")

Why = tuple[str, str]
"""An error: its type, and a message for people."""


@dataclass(frozen=True)
class Entry:
    """The state of one name.

    Attributes
    ----------
    served : the model that answers; None until a generation could be read.
    identity : identity of the generation that was tried last.
    error : why that generation cannot be used; None if it is the one that is served.
    unseen : why the last scan could not determine the generation; None if it could.
    outside : whether the name is a link that leads out of the folder.
    """

    name: str
    served: LoadedModel | None = None
    identity: Hashable = None
    error: Why | None = None
    unseen: Why | None = None
    outside: bool = False
    loaded: float = 0.0
    retry_after: float = _FIRST_RETRY
    retry_at: float = 0.0
    missed: int = 0

    @property
    def problem(self) -> Why | None:
        """Why the served model may not be the newest generation; None if it is."""
        return self.error or self.unseen


@dataclass(frozen=True)
class Stale:
    """The place cannot be read: the time of the last scan that succeeded, and why."""

    since: float
    error: Why


class Registry:
    """Parameters
    ----------
    root : a folder or URL with models, or of one model.
    changed : called with ``(event, name)``; events are "loaded", "reloaded", "failed", "recovered" and "removed".
    """

    def __init__(
        self, root: str | os.PathLike[str], changed: Callable[[str, str], None] = lambda event, name: None
    ) -> None:
        self.place = source_of(root)
        self._changed = changed
        # In the order of names. The scanning thread replaces the whole dictionary, so readers need no lock.
        self.entries: dict[str, Entry] = {}
        self._closed = False
        self.scanned = time.time()
        self.stale: Stale | None = None
        # Printable names of the entries that are not served, and the reasons.
        self.left_out: dict[str, str] = {}

    def served(self, name: str) -> LoadedModel:
        """The model of a name.

        Raises
        ------
        Refused
            There is no such model, or it cannot be served.
        """
        entry = self.entries.get(name)
        if entry is not None and entry.served is not None:
            return entry.served
        raise self._refusal(name, entry)

    def entry(self, name: str) -> Entry:
        """The state of a name.

        Raises
        ------
        Refused
            There is no such name.
        """
        entry = self.entries.get(name)
        if entry is None or entry.outside:
            raise self._refusal(name, entry)
        return entry

    def _refusal(self, name: str, entry: Entry | None) -> Refused:
        if not is_name(name):
            return Refused(
                403, "the name of a model has letters, digits and . _ - only, and no leading dot", "ForbiddenName"
            )
        if entry is None:
            stale = self.stale
            if stale is not None:
                return Refused(
                    503, f"{name} is not known, and new models cannot be found: {stale.error[1]}", stale.error[0]
                )
            return Refused(404, f"there is no model {name!r}; GET /v1/models lists them", "UnknownModel")
        if entry.outside:
            return Refused(403, f"{name} is a link that leads out of the folder of models", "ForbiddenName")
        kind, message = entry.problem or ("Overloaded", "it is being read")
        return Refused(503, f"{name} cannot be served: {message}", kind)

    def close(self) -> None:
        """Stop a running scan at its next model."""
        self._closed = True

    def scan(self) -> None:
        """Find the models, and read the new generations. One thread at a time."""
        now = time.monotonic()
        try:
            found = self.place.candidates()
        except (StreamKernelError, OSError) as error:
            self.scan_failed(error)
            return
        if self.stale is not None:
            log.warning("the place of the models can be read again")
        for name in sorted(self.entries.keys() - found.keys()):
            entry = self.entries[name]
            if entry.missed + 1 < _GONE_FOR and entry.served is not None:
                self._set(replace(entry, missed=entry.missed + 1))
            else:
                self._forget(name)
        for name, candidate in found.items():
            if self._closed:
                return
            self._scan_one(name, candidate, now)
        self._leave_out({printable(name): why for name, why in self.place.left_out.items()})
        self.scanned, self.stale = time.time(), None

    def scan_failed(self, error: Exception) -> None:
        """Record that a scan has failed. The models are served on."""
        if self.stale is None:
            log.warning("the place of the models cannot be read; they are served as they last were: %s", error)
        why = type(error).__name__, self.place.message_of(error)
        self.stale = Stale(self.scanned if self.stale is None else self.stale.since, why)

    def _leave_out(self, found: dict[str, str]) -> None:
        for name in sorted(found.items() - self.left_out.items())[:_MOST_LINES]:
            log.warning("not served: '%s': %s", *name)
        self.left_out = found

    def _scan_one(self, name: str, candidate: Candidate, now: float) -> None:
        entry = self.entries.get(name) or Entry(name)
        if candidate.outside:
            if not entry.outside:
                self._set(Entry(name, outside=True))
            return
        if candidate.problem is not None:
            self._set(replace(entry, unseen=self._why(candidate.problem), outside=False, missed=0))
            if entry.unseen is None:
                self._failed(name, candidate.problem)
            return
        entry = self._found_again(entry)
        known = candidate.identity == entry.identity and not entry.outside
        if known and (entry.error is None or now < entry.retry_at):
            return
        before = entry.served
        try:
            if before is None and not self.place.is_model(candidate):
                if name in self.entries:
                    self._forget(name)
                return
            served = self.place.load(candidate, name, 1 if before is None else before.generation + 1)
        except Exception as error:  # nothing in one folder may stop the others from being served
            wait = min(2 * entry.retry_after, self.place.retry_seconds) if known else _FIRST_RETRY
            self._set(
                replace(
                    entry, identity=candidate.identity, error=self._why(error), outside=False, retry_after=wait,
                    retry_at=now + wait,
                )
            )  # fmt: skip
            if not known:
                self._failed(name, error)
            return
        if served is not None:
            self._set(Entry(name, served, candidate.identity, loaded=time.time()))
            self._changed("loaded" if before is None else "reloaded", name)

    def _found_again(self, entry: Entry) -> Entry:
        """Update the entry of a name that the scan has found, after scans that missed it."""
        if not (entry.missed or entry.unseen):
            return entry
        if entry.served is None and entry.error is None:
            # The entry recorded only that the name could not be read.
            self._forget(entry.name)
            return Entry(entry.name)
        found = replace(entry, missed=0, unseen=None)
        self._set(found)
        if entry.unseen is not None:
            self._changed("recovered", entry.name)
        return found

    def _why(self, error: Exception) -> Why:
        return type(error).__name__, self.place.message_of(error)

    def _failed(self, name: str, error: Exception) -> None:
        log.warning("%s cannot be brought up to date: %s", name, error)
        self._changed("failed", name)

    def _forget(self, name: str) -> None:
        self.entries = {key: value for key, value in self.entries.items() if key != name}
        self._changed("removed", name)

    def _set(self, entry: Entry) -> None:
        self.entries = dict(sorted({**self.entries, entry.name: entry}.items()))
