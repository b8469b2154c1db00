"""The interface of a place that holds byte strings by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from streamkernel.blobs.direct_file import Bytes


class Stamp(NamedTuple):
    """An entry of a listing: size in bytes, time of the last change in ns (0: unknown), a number for the version."""

    size: int
    time: int
    version: int


class Level(NamedTuple):
    """The entries directly below a prefix: the longer prefixes, such as ``"a/b/"``, sorted; and the values, by key."""

    prefixes: list[str]
    stamps: dict[str, Stamp]


class Blobs(ABC):
    """Byte strings by key, such as ``"records/00000001.json"``, below one place.

    Every call does all of its work, or raises an error of `streamkernel.errors`: `StoreNotFoundError` (no such
    bucket), `StoreAccessError` (403), `StoreError` (the place is down, full, failing). An absent key is no error.
    """

    location: str
    """The folder or URL, for messages."""
    listable: bool = True
    """Whether the place can list its keys; some read-only places, such as http, cannot."""

    @abstractmethod
    def read(self, key: str, first: int = 0, last: int | None = None) -> bytes | None:
        """The value of a key, or bytes [first, last) of it; None if there is none.

        A negative `first` counts from the end, and comes without `last`.
        """

    @abstractmethod
    def write(self, key: str, value: bytes) -> None:
        """Set the value of a key: a reader sees the old one or the new, never a part."""

    def write_pieces(self, key: str, pieces: Iterable[Bytes], *, durable: bool) -> None:
        """Like `write`, for a large value; without `durable`, it may be lost if the power fails soon."""
        self.write(key, b"".join(piece.data for piece in pieces))

    @abstractmethod
    def create(self, key: str, value: bytes) -> bool:
        """Set the value of a key that has none; return False, and change nothing, if it has one.

        If several processes create one key at once, one succeeds. False does not always mean that another process was
        first: after a lost answer, a driver tries again and finds its own value. A caller that must know reads the
        value and compares it with its own.
        """

    def prove_create(self) -> None:
        """Raise `StoreError` if the place lets a key be created twice; each process tries this once."""
        return

    @abstractmethod
    def stamps(self, prefix: str = "") -> dict[str, Stamp]:
        """Stamp of every key that begins with `prefix`, by key; it includes all keys created before the call."""

    @abstractmethod
    def level(self, prefix: str = "") -> Level:
        """The entries directly below `prefix`, which is empty or ends in ``/``; deeper entries are not listed.

        If the place has folders, empty folders are among the prefixes.
        """

    def exists(self) -> bool:
        """Whether there is a place to write to; a place without folders always exists."""
        return True

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin with `prefix`, sorted."""
        return sorted(self.stamps(prefix))

    def holds(self, prefix: str = "") -> bool:
        """Whether there is a key that begins with `prefix`; lists as little as possible."""
        if prefix and not prefix.endswith("/"):
            return bool(self.stamps(prefix))
        # Stop at the first value, level by level: the place may be a whole bucket, or all files of a machine.
        level = self.level(prefix)
        return bool(level.stamps) or any(self.holds(inner) for inner in level.prefixes)

    @abstractmethod
    def remove(self, key: str) -> None:
        """Remove a key; does nothing if the key is absent."""

    def remove_all(self, keys: Sequence[str]) -> None:
        """Remove keys, several in one request if the place supports this."""
        for key in keys:
            self.remove(key)

    def remove_below(self, prefix: str = "") -> None:
        """Remove every key that begins with `prefix`, which is empty or ends in ``/``, and its folder if it has one."""
        self.remove_all(self.keys(prefix))

    @abstractmethod
    def size(self, key: str) -> int:
        """Size of a key's value in bytes; -1 if there is none."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"
