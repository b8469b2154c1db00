"""Chunks that would inflate beyond their declared shape are refused before a codec allocates memory for them.

A chunk's decoded size follows from its shape and dtype, but only the compressed bytes determine the size that a codec
really decodes: 6 kB can become 200 MB. Blosc, LZ4 and (usually) Zstandard store the size in their headers, and never
decode more than that. For gzip and zlib the bytes are decoded, counted and discarded, which doubles the cost of
decoding.
"""

from __future__ import annotations

import asyncio
import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import zarr
from zarr.abc.buffer import Buffer
from zarr.abc.codec import BytesBytesCodec, Codec
from zarr.codecs import BytesCodec, ShardingCodec
from zarr.registry import get_numcodec

from streamkernel.table.stored.metadata import ZarrArray
from streamkernel.type_aliases import Untyped

# Allowance for checksums, headers of a codec inside another one, and flushed blocks of a small chunk.
_HEADROOM = 1 << 20
# Without a declared size each compressed block counts as a full one; divide, because writers that flush make shorter
# ones.
_FLUSHES = 16
_ZSTD_BLOCK = 1 << 17
_PIECE = 1 << 16


def bounded(array: ZarrArray) -> ZarrArray:
    """The same array, for reading: a chunk that would inflate beyond its shape raises ValueError."""
    metadata: Untyped = array.metadata
    if metadata.zarr_format == 2:
        if metadata.filters or getattr(metadata.compressor, "codec_id", None) not in _SIZES:
            return array
        limit = math.prod(metadata.chunks) * array.dtype.itemsize
        metadata = replace(metadata, compressor=_BoundedNumcodec(metadata.compressor, limit))
    else:
        metadata = replace(metadata, codecs=_bounded(metadata.codecs))
    return zarr.Array(zarr.AsyncArray(metadata=metadata, store_path=array.store_path))


def _bounded(codecs: tuple[Codec, ...]) -> tuple[Codec, ...]:
    # The size follows from the shape only for plain bytes, not for text of variable length or shards.
    fixed = any(isinstance(codec, BytesCodec) for codec in codecs)
    made: list[Codec] = []
    for codec in codecs:
        if isinstance(codec, ShardingCodec):
            codec = replace(codec, codecs=_bounded(codec.codecs))
        elif fixed and isinstance(codec, BytesBytesCodec) and _name(codec) in _SIZES:
            codec = _BoundedCodec(codec, _name(codec))
        made.append(codec)
    return tuple(made)


def _name(codec: Codec) -> str:
    return str(codec.to_dict()["name"]).removeprefix("numcodecs.")


@dataclass(frozen=True)
class _BoundedCodec(BytesBytesCodec):
    """A codec of a version 3 array; the chunk's specification gives the expected size."""

    inner: BytesBytesCodec
    name: str
    is_fixed_size = False

    async def decode(self, chunks_and_specs: Iterable[tuple[Buffer | None, Any]]) -> Iterable[Buffer | None]:
        chunks = list(chunks_and_specs)
        for chunk, spec in chunks:
            if chunk is not None:
                size = math.prod(spec.shape) * spec.dtype.to_native_dtype().itemsize
                # Counting is slow, and zarr's event loop decodes the chunks of all threads: count in another thread.
                await asyncio.to_thread(_check, self.name, chunk.as_numpy_array(), size)
        return await self.inner.decode(chunks)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Untyped) -> int:
        return self.inner.compute_encoded_size(input_byte_length, chunk_spec)


class _BoundedNumcodec:
    """The compressor of a version 2 array whose chunks have `limit` bytes; its configuration is that of `inner`."""

    codec_id = ""

    def __init__(self, inner: Untyped, limit: int) -> None:
        self.inner, self.limit, self.codec_id = inner, limit, inner.codec_id

    def encode(self, buf: Untyped) -> Untyped:
        return self.inner.encode(buf)

    def decode(self, buf: Untyped, out: Untyped = None) -> Untyped:
        _check(self.codec_id, np.asarray(buf), self.limit)
        return self.inner.decode(buf, out)

    def get_config(self) -> Untyped:
        return self.inner.get_config()

    @classmethod
    def from_config(cls, config: Untyped) -> Untyped:
        return get_numcodec(config)


def _check(name: str, content: np.ndarray[Any, Any], size: int) -> None:
    limit = size + size // 64 + _HEADROOM
    if _SIZES[name](content.view(np.uint8).reshape(-1).data, limit) > limit:
        raise ValueError(f"it would inflate to more than the {size} bytes of its shape")


def _deflate(content: memoryview, limit: int) -> int:
    size = 0
    # + 32 accepts gzip and zlib. A gzip stream may have several members, one after another.
    member = zlib.decompressobj(zlib.MAX_WBITS + 32)
    for first in range(0, len(content), _PIECE):
        piece = bytes(content[first : first + _PIECE])
        while piece and size <= limit:
            if member.eof:
                member = zlib.decompressobj(zlib.MAX_WBITS + 32)
            try:
                size += len(member.decompress(piece, _PIECE))
            except zlib.error:  # the codec reports it
                return size
            piece = member.unused_data if member.eof else member.unconsumed_tail
    return size


def _zstd(content: memoryview, limit: int) -> int:
    """Size of all frames (RFC 8878, section 3.1.1): declared sizes, or a share of the most that blocks can hold."""
    size = position = 0
    while position + 9 <= len(content) and size <= limit:
        magic = int.from_bytes(content[position : position + 4], "little")
        if magic & ~0xF == 0x184D2A50:  # a frame to be skipped
            position += 8 + int.from_bytes(content[position + 4 : position + 8], "little")
            continue
        if magic != 0xFD2FB528:
            break
        descriptor = content[position + 4]
        single_segment = descriptor >> 5 & 1
        position += 5 + (not single_segment) + (0, 1, 2, 4)[descriptor & 3]
        width = (single_segment, 2, 4, 8)[descriptor >> 6]
        declared = int.from_bytes(content[position : position + width], "little") + 256 * (width == 2)
        position += width
        held = last = 0
        while not last and position + 3 <= len(content):
            block = int.from_bytes(content[position : position + 3], "little")
            last, kind, length = block & 1, block >> 1 & 3, block >> 3
            held += length if kind < 2 else _ZSTD_BLOCK
            position += 3 + (1 if kind == 1 else length)
        position += 4 * (descriptor >> 2 & 1)
        size += declared if width else held // _FLUSHES
    return size


_SIZES: dict[str, Callable[[memoryview, int], int]] = {
    "blosc": lambda content, limit: int.from_bytes(content[4:8], "little"),
    "gzip": _deflate,
    "lz4": lambda content, limit: int.from_bytes(content[:4], "little"),
    "zlib": _deflate,
    "zstd": _zstd,
}
