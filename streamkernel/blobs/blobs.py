"""What is asked of a place that holds byte strings by name."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["Blobs"]


class Blobs(ABC):
    """Byte strings by key, such as ``"records/00000001.json"``, below one place.

    Every call ends with the whole of it done, or raises one of `streamkernel.errors`: `StoreNotFoundError` (no such
    bucket), `StoreAccessError` (403), `StoreError` (the place is down, full, failing). An absent key is no error.
    """

    location: str
    """The folder or URL, for messages."""

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

    @abstractmethod
    def keys(self, prefix: str = "") -> list[str]:
        """All keys that begin with `prefix`, sorted; those created before the call are among them."""

    @abstractmethod
    def remove(self, key: str) -> None:
        """Remove a key; nothing happens where it is not there."""

    def size(self, key: str) -> int:
        """Bytes of a key's value; -1 where there is none."""
        value = self.read(key)
        return -1 if value is None else len(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"
