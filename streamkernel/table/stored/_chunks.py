"""The chunk files that an array must have, and checks of them without decoding: presence, size, checksum."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from zarr.abc.codec import Codec
from zarr.abc.store import Store
from zarr.codecs import BytesCodec, Crc32cCodec, Endian, ShardingCodec, ShardingCodecIndexLocation, ZstdCodec
from zarr.storage import LocalStore

from streamkernel.atomic import read_file
from streamkernel.blobs import Stamp
from streamkernel.errors import CorruptChunkError, MissingChunkError
from streamkernel.table.stored._store_values import read_value, value_size
from streamkernel.table.stored.blob_store import BlobStore, missing_chunk
from streamkernel.table.stored.metadata import ZarrArray, join, place, remote_errors, retried
from streamkernel.type_aliases import Int

_EMPTY = np.uint64(2**64 - 1)  # a shard's index entry for an inner chunk that was never written


def _has_checksum(array: ZarrArray) -> bool:
    metadata: Any = array.metadata
    if metadata.zarr_format == 3:
        return _any_checksum(metadata.codecs)
    codecs = [metadata.compressor, *(metadata.filters or ())]
    names = {getattr(codec, "codec_id", None) for codec in codecs}
    return bool(names & {"crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"}) or any(
        getattr(codec, "checksum", False) for codec in codecs
    )


def _any_checksum(codecs: tuple[Codec, ...]) -> bool:
    return any(
        isinstance(codec, Crc32cCodec)
        or (isinstance(codec, ZstdCodec) and codec.checksum)
        or (isinstance(codec, ShardingCodec) and _any_checksum(codec.codecs))
        for codec in codecs
    )


class ChunkFiles:
    """The stored objects (chunks, or shards) of one array: keys by row, presence, size and time of change."""

    def __init__(self, store: Store, path: str, array: ZarrArray) -> None:
        self._store, self._path, self._array = store, path, array
        self._grid = array.shards or array.chunks
        counts = [math.ceil(n / c) for n, c in zip(array.shape, self._grid, strict=True)]
        self.n_bands = counts[0]
        self._across = math.prod(counts[1:])
        self._counts = counts
        # True where a codec detects a flipped bit in a chunk.
        self.checksummed = _has_checksum(array)

    def keys(self, first: int, last: int) -> list[str]:
        """Keys, relative to the array, of the objects that hold rows [first, last)."""
        bands = range(first // self._grid[0], -(-last // self._grid[0]))
        rest = [range(n) for n in self._counts[1:]]
        return [self._array.metadata.encode_chunk_key(coords) for coords in itertools.product(bands, *rest)]

    def describe(self, key: str) -> str:
        """A chunk's key with its store, for messages."""
        return f"chunk {join(self._path, key)} of {place(self._store)}"

    def require(self, first: int, last: int) -> None:
        """Raise `MissingChunkError` unless every object of rows [first, last) is there and not of zero length."""
        if not isinstance(self._store, BlobStore):  # a BlobStore raises by itself when a chunk is read
            for key in self.keys(first, last):
                if self.stat(key)[0] <= 0:
                    raise missing_chunk(self.describe(key), join(self._path, key))
        if self._array.shards is not None:
            self._require_inner(first, last)

    def content(self, key: str) -> bytes:
        """The bytes of an object on a disk or at a URL; raises `MissingChunkError` where there are none."""
        full, content = join(self._path, key), None
        if isinstance(self._store, BlobStore):
            content = self._store.read(full)
        elif isinstance(self._store, LocalStore):
            with suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
                content = read_file(self._store.root / full)
        if not content:
            raise missing_chunk(self.describe(key), full)
        return content

    def corrupt(self, key: str, why: str) -> CorruptChunkError:
        """The error for a chunk whose bytes differ from those written."""
        return CorruptChunkError(
            f"{self.describe(key)} is corrupt ({why}); restore it or write the table again", join(self._path, key)
        )

    def stat(self, key: str) -> tuple[int, int, int]:
        """(size, time of change in ns, inode number); (-1, 0, 0) where there is no file.

        Only local stores have more than the size. The inode number is needed because two files written at once may have
        the same time.
        """
        full = join(self._path, key)

        def status() -> tuple[int, int, int]:
            try:
                if isinstance(self._store, LocalStore):
                    found = os.stat(self._store.root / full)
                    # Some file systems have 64-bit inode numbers, which a signed integer cannot hold.
                    return found.st_size, found.st_mtime_ns, found.st_ino & (2**63 - 1)
                with remote_errors():
                    return value_size(self._store, full), 0, 0
            except (FileNotFoundError, NotADirectoryError):
                return -1, 0, 0

        return retried(status, self.describe(key))

    def survey(self) -> Int:
        """(chunks, 3) size, time and inode number of every object of the grid; raises for the first missing one."""
        shape = self._array.shape
        if math.prod(shape) == 0:
            return np.zeros((0, 3), dtype=np.int64)
        stat = self._listed()
        found = np.empty((self.n_bands * self._across, 3), dtype=np.int64)
        rows = self._grid[0]
        index = 0
        for band in range(self.n_bands):
            for key in self.keys(band * rows, min((band + 1) * rows, shape[0])):
                found[index] = stat(key)
                if found[index, 0] <= 0:
                    raise missing_chunk(self.describe(key), join(self._path, key))
                index += 1
        return found

    def _listed(self) -> Callable[[str], tuple[int, int, int]]:
        """A function with the result of `stat`; at a URL it looks up one listing of all chunks."""
        if not isinstance(self._store, BlobStore) or not self._store.listable:
            return self.stat
        stamps, absent = self._store.stamps(join(self._path, "")), Stamp(-1, 0, 0)
        return lambda key: stamps.get(join(self._path, key), absent)

    def key_at(self, index: int) -> str:
        """Key of the object in row `index` of `survey`."""
        band, across = divmod(index, self._across)
        return self.keys(band * self._grid[0], band * self._grid[0] + 1)[across]

    def rows_at(self, index: int) -> tuple[int, int]:
        """Rows that object `index` of `survey` holds."""
        first = (index // self._across) * self._grid[0]
        return first, min(first + self._grid[0], self._array.shape[0])

    # An existing shard may lack inner chunks, which zarr reads as the fill value; the index at its end lists them.
    def _require_inner(self, first: int, last: int) -> None:
        codec = getattr(self._array.metadata, "codecs", (None,))[0]
        if not isinstance(codec, ShardingCodec):
            return
        shape = [s // c for s, c in zip(self._grid, codec.chunk_shape, strict=True)]
        little, extra = True, 0
        for step in codec.index_codecs:
            if isinstance(step, BytesCodec):
                little = step.endian != Endian.big
            elif isinstance(step, Crc32cCodec):
                extra += 4
            else:  # a compressed index cannot be found by its size; the finite check still sees NaN fill
                return
        size = 16 * math.prod(shape)
        at_end = codec.index_location == ShardingCodecIndexLocation.end
        bounds = (-(size + extra), None) if at_end else (0, size + extra)
        inner = codec.chunk_shape
        for key in self.keys(first, last):
            full = join(self._path, key)
            content = retried(partial(read_value, self._store, full, *bounds), self.describe(key)) or b""
            if len(content) != size + extra:
                raise self.corrupt(key, "shorter than its shard index")
            index = np.frombuffer(content[:size], dtype="<u8" if little else ">u8").reshape(*shape, 2)
            origin = [n * g for n, g in zip(self._coordinates(key), self._grid, strict=True)]
            # Only the inner chunks that these rows touch, and none beyond the array's edge.
            until = [min(last, self._array.shape[0]), *self._array.shape[1:]]
            lows = [max(0, first - origin[0]) // inner[0], *(0 for _ in inner[1:])]
            highs = [min(-(-(u - o) // c), s) for u, o, c, s in zip(until, origin, inner, shape, strict=True)]
            part = index[tuple(slice(low, high) for low, high in zip(lows, highs, strict=True))]
            if (part[..., 0] == _EMPTY).any():
                hole = np.argwhere(part[..., 0] == _EMPTY)[0] + lows
                raise MissingChunkError(
                    f"inner chunk {tuple(int(n) for n in hole)} of shard {join(self._path, key)} of "
                    f"{place(self._store)} is missing; restore the shard or write the array again with "
                    "write_empty_chunks=True",
                    full,
                )

    def _coordinates(self, key: str) -> tuple[int, ...]:
        numbers = key.removeprefix("c").replace(".", "/").strip("/").split("/")
        return tuple(int(number) for number in numbers)
