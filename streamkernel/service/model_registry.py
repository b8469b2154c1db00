"""The models of a place, followed while they come, change and go.

Models are replaced in one step (`streamkernel.atomic`, `streamkernel.blobs.generations`), so that one look at each
tells what is new. A new generation is read, verified and warmed beside the one that is served, and then takes its place
in one step; a request keeps the one that it began with. A generation that cannot be used is reported, and the one
before it stays. So do all models of a place that cannot be seen, which is reported as well: they are stale.

Names of requests are looked up among those that were found, and never become paths.
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
from streamkernel.service.model_sources import Seen, is_name, printable, source_of

__all__ = ["Entry", "Registry", "Stale", "Why"]

# Looks at which a folder must be gone before its model is: a rename in two steps leaves none for a moment.
_GONE_FOR = 2
_FIRST_RETRY = 1.0
_MOST_LINES = 20  # of the log, for what one look leaves out

log = logging.getLogger("streamkernel.service")

Why = tuple[str, str]
"""An error: its type, and a message for people."""


@dataclass(frozen=True)
class Entry:
    """What is known of one name.

    Attributes
    ----------
    served : what answers; None before the first generation that could be read.
    identity : of the generation that was read last, or could not be.
    error : of that generation; None where it is what is served.
    unseen : why the last look could not tell which generation is there; None where it could.
    outside : a link that leads out of the folder.
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
        """Why what is served may not be the newest generation."""
        return self.error or self.unseen


@dataclass(frozen=True)
class Stale:
    """The place cannot be seen: since when (the last look that went well), and why."""

    since: float
    error: Why


class Registry:
    """Parameters
    ----------
    root : the place: a folder or URL with models, or of one model.
    changed : told ``(event, name)``; events are "loaded", "reloaded", "failed", "recovered" and "removed".
    """

    def __init__(
        self, root: str | os.PathLike[str], changed: Callable[[str, str], None] = lambda event, name: None
    ) -> None:
        self.place = source_of(root)
        self._changed = changed
        # Replaced as a whole by the one thread that scans, so that readers need no lock.
        self._entries: dict[str, Entry] = {}
        self._closed = False
        self.scanned = time.time()
        self.stale: Stale | None = None
        # Names as they can be told, and why they are not served.
        self.left_out: dict[str, str] = {}

    @property
    def entries(self) -> dict[str, Entry]:
        """By name, in the order of names."""
        return self._entries

    def served(self, name: str) -> LoadedModel:
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
            stale = self.stale
            if stale is not None:
                return Refused(
                    503, f"{name} is not known, and new models cannot be seen: {stale.error[1]}", stale.error[0]
                )
            return Refused(404, f"there is no model {name!r}; GET /v1/models lists them", "UnknownModel")
        if entry.outside:
            return Refused(403, f"{name} is a link that leads out of the folder of models", "ForbiddenName")
        kind, message = entry.problem or ("Overloaded", "it is being read")
        return Refused(503, f"{name} cannot be served: {message}", kind)

    def close(self) -> None:
        """Have a scan that is at work end at its next model."""
        self._closed = True

    def scan(self) -> None:
        """Look at the place once, and read what is new. One thread at a time."""
        now = time.monotonic()
        try:
            found = self.place.look()
        except (StreamKernelError, OSError) as error:
            self.lost_sight(error)
            return
        if self.stale is not None:
            log.warning("the models can be seen again")
        for name in sorted(self._entries.keys() - found.keys()):
            entry = self._entries[name]
            if entry.missed + 1 < _GONE_FOR and entry.served is not None:
                self._set(replace(entry, missed=entry.missed + 1))
            else:
                self._forget(name)
        for name, seen in found.items():
            if self._closed:
                return
            self._look(name, seen, now)
        self._leave_out({printable(name): why for name, why in self.place.left_out.items()})
        self.scanned, self.stale = time.time(), None

    def lost_sight(self, error: Exception) -> None:
        """A look has failed: what is served goes on."""
        if self.stale is None:
            log.warning("the models cannot be seen, and are served as they are: %s", error)
        why = type(error).__name__, self.place.told(error)
        self.stale = Stale(self.scanned if self.stale is None else self.stale.since, why)

    def _leave_out(self, found: dict[str, str]) -> None:
        for name in sorted(found.items() - self.left_out.items())[:_MOST_LINES]:
            log.warning("not served: '%s': %s", *name)
        self.left_out = found

    def _look(self, name: str, seen: Seen, now: float) -> None:
        entry = self._entries.get(name) or Entry(name)
        if seen.outside:
            if not entry.outside:
                self._set(Entry(name, outside=True))
            return
        if seen.problem is not None:
            self._set(replace(entry, unseen=self._why(seen.problem), outside=False, missed=0))
            if entry.unseen is None:
                self._failed(name, seen.problem)
            return
        entry = self._seen_again(entry)
        known = seen.identity == entry.identity and not entry.outside
        if known and (entry.error is None or now < entry.retry_at):
            return
        before = entry.served
        try:
            if before is None and not self.place.is_model(seen):
                if name in self._entries:
                    self._forget(name)
                return
            served = self.place.load(seen, name, 1 if before is None else before.generation + 1)
        except Exception as error:  # whatever one folder holds, the others are served
            wait = min(2 * entry.retry_after, self.place.retry_seconds) if known else _FIRST_RETRY
            self._set(
                replace(
                    entry, identity=seen.identity, error=self._why(error), outside=False, retry_after=wait,
                    retry_at=now + wait,
                )
            )  # fmt: skip
            if not known:
                self._failed(name, error)
            return
        if served is not None:
            self._set(Entry(name, served, seen.identity, loaded=time.time()))
            self._changed("loaded" if before is None else "reloaded", name)

    def _seen_again(self, entry: Entry) -> Entry:
        """The entry of a name that is there, and can be seen."""
        if not (entry.missed or entry.unseen):
            return entry
        if entry.served is None and entry.error is None:
            # Nothing was known of it but that it could not be seen.
            self._forget(entry.name)
            return Entry(entry.name)
        seen = replace(entry, missed=0, unseen=None)
        self._set(seen)
        if entry.unseen is not None:
            self._changed("recovered", entry.name)
        return seen

    def _why(self, error: Exception) -> Why:
        return type(error).__name__, self.place.told(error)

    def _failed(self, name: str, error: Exception) -> None:
        log.warning("%s cannot be brought up to date: %s", name, error)
        self._changed("failed", name)

    def _forget(self, name: str) -> None:
        self._entries = {key: value for key, value in self._entries.items() if key != name}
        self._changed("removed", name)

    def _set(self, entry: Entry) -> None:
        self._entries = dict(sorted({**self._entries, entry.name: entry}.items()))
