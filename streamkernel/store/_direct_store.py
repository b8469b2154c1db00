"""The files of a bundle for zarr, read and written in its event loop itself.

zarr's own store hands each file to a third thread and waits for it. A bundle has many small files, used one after
another: half of the time of a load went into these handovers.
"""

from __future__ import annotations

from typing import Any

from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore


class DirectStore(LocalStore):
    """A folder whose files have at most the bytes of one chunk: nothing else in the loop waits for long."""

    async def get(self, key: str, prototype: BufferPrototype | None = None, byte_range: Any = None) -> Buffer | None:
        """Bytes of a file, or those of `byte_range`; None where there is no file."""
        return self.get_sync(key, prototype=prototype, byte_range=byte_range)

    async def set(self, key: str, value: Buffer) -> None:
        """Write a file, in the place of one that is there."""
        self.set_sync(key, value)
