"""What is asked of a place that holds byte strings by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Blobs", "Level", "Stamp"]


class Stamp(NamedTuple):
    """What a listing says of a value: bytes, time of the last change in ns (0: unknown), a number of its version."""

    size: int
    time: int
    version: int


class Level(NamedTuple):
    """What is directly below a prefix: what longer keys go on with, such as ``"a/b/"``, sorted; and values, by key."""

    prefixes: list[str]
    stamps: dict[str, Stamp]


class Blobs(ABC):
    """Byte strings by key, such as ``"records/00000001.json"``, below one place.

    Every call ends with the whole of it done, or raises one of `streamkernel.errors`: `StoreNotFoundError` (no such
    bucket), `StoreAccessError` (403), `StoreError` (the place is down, full, failing). An absent key is no error.
    """

    location: str
    """The folder or URL, for messages."""
    listable: bool = True
    """Whether the place can say what is in it; some that are only read, such as http, cannot."""

    @abstractmethod
    def read(self, key: str) -> bytes | None:
        """The value of a key; None where there is none."""

    @abstractmethod
    def write(self, key: str, value: bytes) -> None:
        """Set the value of a key: a reader sees the old one or the new, never a part."""

    @abstractmethod
    def create(self, key: str, value: bytes) -> bool:
        """Set the value of a key that has none; False, and nothing is changed, where it has one.

        Of several who create one key at once, one succeeds. After a lost answer a driver may have tried again and
        found its own value there, so that this says False: who must know compares what is there with what it wrote.
        """

    def prove_create(self) -> None:
        """Raise `StoreError` where the place does not refuse to create what is there; tried once in a process."""
        return

    @abstractmethod
    def stamps(self, prefix: str = "") -> dict[str, Stamp]:
        """What is there, by key, of all keys that begin with `prefix`; those created before the call are among them."""

    @abstractmethod
    def level(self, prefix: str = "") -> Level:
        """What is directly below `prefix`, which is empty or ends in ``/``; what lies deeper is not looked at.

        Where there are folders, those without a value in them are among the prefixes.
        """

    def keys(self, prefix: str = "") -> list[str]:
        """The same keys, sorted."""
        return sorted(self.stamps(prefix))

    def holds(self, prefix: str = "") -> bool:
        """Whether there is a key that begins with `prefix`; asks for no more than it must."""
        if prefix and not prefix.endswith("/"):
            return bool(self.stamps(prefix))
        # Level by level, to the first value: what is there may be a whole bucket, or a machine's files.
        level = self.level(prefix)
        return bool(level.stamps) or any(self.holds(inner) for inner in level.prefixes)

    @abstractmethod
    def remove(self, key: str) -> None:
        """Remove a key; nothing happens where it is not there."""

    def remove_all(self, keys: Sequence[str]) -> None:
        """Remove keys, several at a time where the place can."""
        for key in keys:
            self.remove(key)

    def read_part(self, key: str, first: int, last: int | None) -> bytes | None:
        """Bytes [first, last) of a value; from its end on where `first` is negative, all that follow without `last`."""
        value = self.read(key)
        return None if value is None else value[first:last]

    def size(self, key: str) -> int:
        """Bytes of a key's value; -1 where there is none."""
        value = self.read(key)
        return -1 if value is None else len(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"
