"""A read-only Zarr store over the byte strings at a URL: the generation that was current when the store was opened.

One class serves object stores and fsspec's drivers, so that all of them raise the same typed errors
(`streamkernel.blobs`), and an absent chunk is an error and never fill. It pickles as its URL and the generation's name:
the receiver opens it with the credentials of its own environment.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any

from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.abc.store import Store

from streamkernel.blobs import Generation, Generations, Stamp
from streamkernel.errors import MissingChunkError
from streamkernel.table.stored._store_values import ByteRequest, bounds

_CHUNK = re.compile(r"(?:^|/)c/(\d+)(?:/\d+)*$")


def missing_chunk(what: str, key: str) -> MissingChunkError:
    """The error for a chunk that is not there."""
    return MissingChunkError(
        f"{what} is missing or empty; restore it (or, if the writer leaves out chunks of fill values, write the array "
        "again with write_empty_chunks=True)",
        key,
    )


class BlobStore(Store):
    """The objects at `url`.

    Parameters
    ----------
    url : URL of a table or output, or of any Zarr array or group.
    generation : generation to read; the current one by default.
    chunks_required : whether an absent or empty value raises `MissingChunkError`: for arrays whose metadata were read.
    """

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, url: str, generation: Generation | None = None, chunks_required: bool = False) -> None:
        super().__init__(read_only=True)
        self.url, self._required = url, chunks_required
        self._place = Generations(url)
        self.generation = generation or self._place.latest_or_plain()
        self.listable = self._place.blobs.listable  # whether the place can list its keys

    def requiring_chunks(self) -> BlobStore:
        """The same store, in which an absent chunk is an error."""
        return BlobStore(self.url, self.generation, True)

    def follow(self) -> bool:
        """Switch to the generation that is current now; False if it is the one that is read already."""
        latest = self._place.latest()
        if latest is None or latest.identity == self.generation.identity:
            return False
        self.generation = latest
        return True

    def read(self, key: str, first: int = 0, last: int | None = None) -> bytes | None:
        """The value of a key, or a part of it; None where there is none.

        If the generation was removed, the current one is read instead. A reader that pinned digests (`ZarrRows`) then
        finds whether its content is the same.
        """
        content = self._place.blobs.read(self._located(key), first, last)
        if content is None and self.generation.record is not None and self.follow():
            content = self._place.blobs.read(self._located(key), first, last)
        if self._required and not content:
            raise missing_chunk(f"chunk {key} of {self.url}", key)
        return content

    def _located(self, key: str) -> str:
        """Full key of a key of the generation; a chunk is in the layer of its number."""
        layers = self.generation.layers
        if len(layers) > 1 and (found := _CHUNK.search(key)):
            array, number = key[: found.start()], int(found[1])
            return next(layer.prefix for layer in reversed(layers) if layer.first_of(array) <= number) + key
        return layers[-1].prefix + key

    def stamps(self, prefix: str) -> dict[str, Stamp]:
        """Size, time and version of every object of the generation whose key begins with `prefix`, from listings."""
        found: dict[str, Stamp] = {}
        for layer in self.generation.layers:
            for full, stamp in self._place.blobs.stamps(layer.prefix + prefix).items():
                key = full.removeprefix(layer.prefix)
                if self._located(key) == full:
                    found[key] = stamp
        return found

    def size(self, key: str) -> int:
        """Bytes of a key's value; -1 where there is none."""
        return self._place.blobs.size(self._located(key))

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Zarr's read method."""
        first, last = bounds(byte_range)
        content = await asyncio.to_thread(self.read, key, first, last)
        return None if content is None else prototype.buffer.from_bytes(content)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges))

    async def exists(self, key: str) -> bool:
        return await asyncio.to_thread(self.size, key) >= 0

    async def getsize(self, key: str) -> int:
        size = await asyncio.to_thread(self.size, key)
        if size < 0:
            raise FileNotFoundError(key)
        return size

    async def list(self) -> AsyncIterator[str]:
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in sorted(await asyncio.to_thread(self.stamps, prefix)):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        start = f"{prefix.rstrip('/')}/" if prefix else ""
        keys = await asyncio.to_thread(self.stamps, start)
        for name in sorted({key.removeprefix(start).partition("/")[0] for key in keys}):
            yield name

    async def set(self, key: str, value: Buffer) -> None:
        raise NotImplementedError("this store is only read")

    async def delete(self, key: str) -> None:
        raise NotImplementedError("this store is only read")

    def with_read_only(self, read_only: bool = False) -> BlobStore:
        if not read_only:
            raise NotImplementedError("this store is only read")
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlobStore) and self.__reduce__() == other.__reduce__()

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"BlobStore({self.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return BlobStore, (self.url, self.generation, self._required)
