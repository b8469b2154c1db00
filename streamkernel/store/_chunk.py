"""One chunk of an uncompressed Zarr array: its numbers, then their CRC32C.

The bytes equal those of Zarr's own codecs, but one pass makes them: each piece is hashed, added to the checksum and
written while it is in the processor's cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import google_crc32c
import numpy as np
import xxhash

from streamkernel.blobs import Blobs, Bytes
from streamkernel.type_aliases import AnyArray, AnyDType

PIECE_BYTES = 1 << 20


def write_chunk(blobs: Blobs, key: str, values: AnyArray, shape: tuple[int, ...], *, durable: bool) -> str:
    """Set `key` to the chunk, and return the digest of the values, equal to `streamkernel.atomic.array_digest`.

    Parameters
    ----------
    values : C-contiguous array in little-endian byte order; the last one along an axis may be shorter.
    shape : shape of a whole chunk.
    durable : whether to return only when the chunk is on the disk.
    """
    digest = xxhash.xxh3_128()

    def pieces() -> Iterator[Bytes]:
        checksum = 0
        for piece in _pieces(values):
            digest.update(piece.data)
            checksum = google_crc32c.extend(checksum, piece)
            yield piece
        # Rows never written must not read as valid numbers.
        missing = math.prod(shape) - values.size
        for piece in _pieces(np.full(missing, np.nan if values.dtype.kind == "f" else 0, dtype=values.dtype)):
            checksum = google_crc32c.extend(checksum, piece)
            yield piece
        yield np.frombuffer(checksum.to_bytes(4, "little"), np.uint8)

    blobs.write_pieces(key, pieces(), durable=durable)
    return digest.hexdigest()


def read_chunk(blobs: Blobs, key: str, shape: tuple[int, ...], dtype: AnyDType) -> AnyArray | None:
    """The values of a whole chunk; None if it is absent or damaged."""
    content = blobs.read(key)
    return None if content is None else chunk_values(content, shape, dtype)


def chunk_values(content: bytes, shape: tuple[int, ...], dtype: AnyDType) -> AnyArray | None:
    """The values of a whole chunk with these bytes; None if they are damaged."""
    if len(content) != math.prod(shape) * dtype.itemsize + 4:
        return None
    numbers = np.frombuffer(content, np.uint8)[:-4]
    if google_crc32c.extend(0, numbers) != int.from_bytes(content[-4:], "little"):
        return None
    return numbers.view(dtype).reshape(shape)


def _pieces(values: AnyArray) -> Iterator[Bytes]:
    data = values.reshape(-1).view(np.uint8)
    return (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))
