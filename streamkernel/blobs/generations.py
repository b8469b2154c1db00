"""Generations of an output in an object store: written beside each other, made current by one record.

::

    OUT/generations/1f3a9c20b7d4/...     objects of one generation; its manifest is written last
    OUT/CURRENT/00000007.json            the current one: {"generation": ..., "digest": ..., "layers": [...]}

A reader looks up the latest record and reads that generation to the end. A new generation does not disturb it, because
the previous generation is not removed. Folders are exchanged by rename(2) instead (`atomic.publish_folder`). The rest
of the layout equals that of a folder, so a plain copy of a local output, without these two prefixes, can be read too.

After an append, the new generation holds the new chunks only. Its `layers` list the generations of the other chunks.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamkernel.atomic import folder_generation
from streamkernel.blobs._normal_form import normalised
from streamkernel.blobs._remote import PROBE
from streamkernel.blobs.locations import blobs_at
from streamkernel.blobs.records import Record, RecordLog
from streamkernel.errors import CorruptMetadataError

CURRENT, FOLDER = "CURRENT", "generations"

# Prefixes of records, of generations, and of running writers: appends and unfinished outputs (`store`).
_OURS = (f"{CURRENT}/", f"{FOLDER}/", "APPEND/", "UNFINISHED/", PROBE)
_NAME = re.compile(r"[0-9a-f]{12}|")
# Number of new generations that a reader follows before it gives up on writers that keep overwriting.
MOST_FOLLOWED = 10
_STRAY_NS = 24 * 3600 * 10**9
# Each of these files marks a plain copy of a folder, and changes when the copy changes.
_MARKS = ("COMPLETE", "zarr.json", ".zgroup", ".zarray", "config.json")


def content_digest(content: bytes) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class Layer:
    """The generation that holds the chunks from number `first` up to the next layer; the name "" is a plain copy.

    `firsts` has the number for the arrays that have another one: (name of the array, number).
    """

    name: str
    first: int
    firsts: tuple[tuple[str, int], ...] = ()

    def first_of(self, array: str) -> int:
        """Number of the first chunk of an array that it holds."""
        return dict(self.firsts).get(array, self.first)

    def is_covered(self, later: Layer) -> bool:
        """Whether a later layer holds all chunks that this one does."""
        arrays = {name for name, _ in (*self.firsts, *later.firsts)}
        return self.first >= later.first and all(self.first_of(name) >= later.first_of(name) for name in arrays)

    def to_config(self) -> list[Any]:
        """Plain JSON."""
        return [self.name, self.first, *([dict(self.firsts)] if self.firsts else [])]

    @classmethod
    def from_config(cls, config: Sequence[Any]) -> Layer:
        """The layer that `to_config` wrote."""
        name, first, *others = config
        firsts = dict(*others)
        return cls(str(name), int(first), tuple((str(array), int(number)) for array, number in firsts.items()))

    @property
    def prefix(self) -> str:
        """Prefix of its keys."""
        return f"{FOLDER}/{self.name}/" if self.name else ""


@dataclass(frozen=True)
class Generation:
    """A generation that is, or was, current.

    Attributes
    ----------
    record : the record that makes it current; None for a plain copy, which has no record.
    layers : places of its chunks, by ascending `first`; the last layer also holds all objects that are not chunks.
    digest : digest of its manifest.
    """

    record: Record | None
    layers: tuple[Layer, ...]
    digest: str | None

    @property
    def prefix(self) -> str:
        """Prefix of the keys of its metadata."""
        return self.layers[-1].prefix

    @property
    def identity(self) -> Hashable:
        """A value that differs between two generations."""
        return None if self.record is None else (self.record.number, self.record.nonce)


PLAIN = Generation(None, (Layer("", 0),), None)


class Generations:
    """The generations of the output at a URL."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.blobs = blobs_at(location)
        self._log = RecordLog(self.blobs, CURRENT)

    def latest(self) -> Generation | None:
        """The current generation; None if there is no record: the URL is empty, or holds a plain copy.

        Raises
        ------
        CorruptMetadataError
            The record is not in our format.
        """
        record = self._log.latest() if self.blobs.listable else None
        return None if record is None else self._of(record)

    def latest_or_plain(self) -> Generation:
        """The current generation; without a record, a generation that stands for the plain copy at the URL."""
        return self.latest() or PLAIN

    def identity(self) -> Hashable | None:
        """A value that changes with the content of the URL; None if it is empty. Costs a listing and a small read."""
        found = self.latest()
        if found is not None:
            return found.identity
        stamps = self.blobs.level().stamps if self.blobs.listable else {}
        return tuple((mark, *stamps[mark]) for mark in _MARKS if mark in stamps) or None

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """One file of the current generation, or its first `most` bytes; None if there is none."""
        for _ in range(MOST_FOLLOWED):
            generation = self.latest_or_plain()
            key = generation.prefix + name
            whole = most is None or self.blobs.size(key) <= most
            content = self.blobs.read(key, 0, None if whole else most)
            # If the generation was removed meanwhile, there is a newer one.
            if content is not None or generation.record is None:
                return content
        return None

    def taken(self) -> bool:
        """Whether the URL holds more than the remains of writers that did not finish."""
        if self.latest() is not None:
            return True
        level = self.blobs.level()
        if level.stamps or any(prefix not in _OURS and self.blobs.holds(prefix) for prefix in level.prefixes):
            return True
        return f"{FOLDER}/" in level.prefixes and bool(self._no_generations())

    def foreign_keys(self, owned: Callable[[str], bool]) -> Iterator[str]:
        """Keys below the URL that our writers did not make and that `owned` does not accept as part of a plain copy."""
        latest = self.latest()
        plain = latest is None or any(not layer.name for layer in latest.layers)
        level = self.blobs.level()
        yield from (key for key in level.stamps if not ((plain and owned(key)) or key in _MARKS))
        for prefix in level.prefixes:
            if prefix == f"{FOLDER}/":
                yield from self._no_generations()
            elif prefix not in _OURS:
                # The remains of a replaced plain copy are not foreign, and nobody removes them.
                known = owned if plain else _of_a_group
                yield from (key for key in self.blobs.keys(prefix) if not known(key))

    def _no_generations(self) -> list[str]:
        """Entries of the folder of generations that are none: the folder is then somebody else's."""
        level, prefix = self.blobs.level(f"{FOLDER}/"), f"{FOLDER}/"
        names = (*level.stamps, *level.prefixes)
        return [name for name in names if not _NAME.fullmatch(name.removeprefix(prefix).rstrip("/"))]

    @staticmethod
    def new_name() -> str:
        """A random name for a new generation."""
        return uuid.uuid4().hex[:12]

    def publish(
        self,
        layers: Iterable[Layer],
        digest: str,
        *,
        after: Generation | None,
        overwritten: Callable[[str], bool] | None = None,
    ) -> Generation | None:
        """Make a generation current, as the successor of `after` (None: the first); None if another was made meanwhile.

        If `overwritten` is given, the former plain copy is removed: every key for which it returns True.
        """
        layers = tuple(layers)
        value = {
            "generation": layers[-1].name,
            "digest": digest,
            "layers": [layer.to_config() for layer in layers],
        }
        before = None if after is None else after.record
        record = self._log.append(value, after=before)
        if record is None:
            return None
        self._prune(record, overwritten=overwritten)
        return Generation(record, layers, digest)

    def replace(
        self, layers: Iterable[Layer], digest: str, overwritten: Callable[[str], bool] | None = None
    ) -> Generation:
        """Make a generation current, whichever generation is current before; see `publish`."""
        layers = tuple(layers)
        while True:
            done = self.publish(layers, digest, after=self.latest(), overwritten=overwritten)
            if done is not None:
                return done

    def discard(self, name: str) -> None:
        """Remove a generation that was not published."""
        self.blobs.remove_below(Layer(name, 0).prefix)

    def _prune(self, record: Record, *, overwritten: Callable[[str], bool] | None) -> None:
        """Remove all objects that neither the current generation nor the one before it needs.

        A generation that no record names is either being written, or was left by a writer that died. It counts as left
        if its last object is more than a day older than the newest object of any generation.
        """
        records = {entry.number: self._of(entry) for entry in self._log.all()}
        if record.number not in records or max(records) != record.number:
            # Another process has published since; that process prunes.
            return
        latest = [records[number] for number in (record.number, record.number - 1) if number in records]
        needed = {layer.name for generation in latest for layer in generation.layers}
        known = {layer.name for generation in records.values() for layer in generation.layers}
        stamps = self.blobs.stamps(f"{FOLDER}/")
        newest: dict[str, int] = {}
        for key, stamp in stamps.items():
            name = key.split("/")[1]
            if not _NAME.fullmatch(name) or key.count("/") < 2:
                continue  # none of ours
            newest[name] = max(newest.get(name, 0), stamp.time)
        now = max(newest.values(), default=0)
        gone = {
            name
            for name, time in newest.items()
            if name not in needed and (name in known or (time and now - time > _STRAY_NS))
        }
        self.blobs.remove_all([key for key in stamps if key.split("/")[1] in gone])
        if overwritten is not None and "" not in needed and ("" in known or record.number <= 2):
            self.blobs.remove_all(
                [key for key in self.blobs.stamps() if not key.startswith(_OURS) and overwritten(key)]
            )

    def _of(self, record: Record) -> Generation:
        try:
            layers = tuple(map(Layer.from_config, record.value["layers"]))
            if not layers or not all(_NAME.fullmatch(layer.name) for layer in layers):
                raise ValueError("layers")
            return Generation(record, layers, str(record.value["digest"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CorruptMetadataError(
                f"{self.location}/{CURRENT} does not say which generation is current",
                remedy="restore it from a copy",
            ) from error


def _of_a_group(key: str) -> bool:
    """Whether a key has a form that our folders use: metadata, or an array's metadata and chunks."""
    return key in _MARKS or re.fullmatch(r"[^/]+/(zarr\.json|c(/\d+)*)", key) is not None


def generation_of(location: str | os.PathLike[str]) -> Hashable | None:
    """A value that differs between two generations of the output at a path or URL; None if there is no output.

    It changes when a model, table or output is replaced or has rows appended. It costs a listing and a small read.
    """
    place = normalised(location)
    return Generations(place).identity() if isinstance(place, str) else folder_generation(place)
