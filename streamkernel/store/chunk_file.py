"""One chunk of an uncompressed Zarr array as a file: its numbers, then their CRC32C.

The bytes equal those of Zarr's own codecs, but one pass writes them: each piece is hashed, added to the checksum and
sent to the disk while it is in the cache. Direct writes bypass the system's page cache where possible: pages of a file
that is larger than memory are of no use there, and they cost more time than the computation of their numbers.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import uuid
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import xxhash
from numpy.typing import NDArray

__all__ = ["PIECE_BYTES", "fill_rows", "page_aligned", "write_chunk"]

PIECE_BYTES = 1 << 20
_ALIGNED = 4096  # direct writes need addresses and sizes that are multiples of this, on every disk that we know
_DIRECT = getattr(os, "O_DIRECT", 0)  # Linux has it

Bytes = NDArray[np.uint8]


def write_chunk(file: Path, values: NDArray[Any], shape: tuple[int, ...], *, durable: bool) -> str:
    """Replace `file` by the chunk; a reader sees the old chunk or the new one, never a part.

    Parameters
    ----------
    values : C-contiguous array in little-endian byte order, best `page_aligned`; at the end of an array it may have
        fewer rows than `shape`.
    shape : shape of a whole chunk.
    durable : whether to return only when the chunk is on the disk.

    Returns
    -------
    str
        Digest of the values, equal to `streamkernel.atomic.array_digest`.
    """
    data, fill = _bytes(values), _bytes(fill_rows(values, shape))
    digest, checksum = xxhash.xxh3_128(), 0
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.{uuid.uuid4().hex}.partial")
    try:
        with _PieceWriter(temporary, direct=durable) as writer:
            for piece in _pieces(data):
                digest.update(piece.data)
                checksum = google_crc32c.extend(checksum, piece)
                writer.write(piece)
            for piece in _pieces(fill):
                checksum = google_crc32c.extend(checksum, piece)
                writer.write(piece)
            writer.write(_bytes(np.array([checksum], dtype="<u4")))
            writer.finish(durable=durable)
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return digest.hexdigest()


def page_aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An uninitialised array that begins at a page, so that direct writes need no copy."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNED, dtype=np.uint8)
    skipped = -memory.ctypes.data % _ALIGNED
    return memory[skipped : skipped + size].view(dtype).reshape(shape)


class _PieceWriter:
    """Writer of a new file; bytes at addresses that direct writes do not accept go through an aligned buffer."""

    def __init__(self, path: Path, *, direct: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self.direct = direct and bool(_DIRECT)
        try:
            self.descriptor = os.open(path, flags | (_DIRECT if self.direct else 0), 0o666)
        except OSError as error:
            if not self.direct or error.errno != errno.EINVAL:
                raise
            # This file system has no direct writes; some create the file before they report this.
            path.unlink(missing_ok=True)
            self.direct = False
            self.descriptor = os.open(path, flags, 0o666)
        self.buffer = page_aligned((PIECE_BYTES,), np.dtype(np.uint8))
        self.filled, self.size = 0, 0

    def write(self, data: Bytes) -> None:
        """Append bytes."""
        self.size += len(data)
        if not self.filled and data.ctypes.data % _ALIGNED == 0:
            whole = len(data) // _ALIGNED * _ALIGNED
            self._send(data[:whole].data)
            data = data[whole:]
        while len(data):
            part = data[: PIECE_BYTES - self.filled]
            self.buffer[self.filled : self.filled + len(part)] = part
            self.filled += len(part)
            data = data[len(part) :]
            if self.filled == PIECE_BYTES:
                self._send(self.buffer.data)
                self.filled = 0

    def finish(self, *, durable: bool) -> None:
        """Write the rest of the buffer, padded to whole pages, then cut the padding off."""
        if self.filled:
            self._send(self.buffer[: -(-self.filled // _ALIGNED) * _ALIGNED].data)
            os.ftruncate(self.descriptor, self.size)
        if durable:
            os.fsync(self.descriptor)

    def _send(self, left: memoryview) -> None:
        while len(left):
            try:
                # One call may write fewer bytes when the disk becomes full.
                left = left[os.write(self.descriptor, left) :]
            except OSError as error:
                if not self.direct or error.errno != errno.EINVAL:
                    raise
                # The file opened, but it does not accept direct writes; or a short write left an unaligned position.
                self.direct = False
                fcntl.fcntl(self.descriptor, fcntl.F_SETFL, fcntl.fcntl(self.descriptor, fcntl.F_GETFL) & ~_DIRECT)

    def __enter__(self) -> _PieceWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.descriptor)


def fill_rows(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The rows missing from a whole chunk, as fill: rows never written must not read as valid numbers."""
    missing = (shape[0] - len(values), *shape[1:])
    return np.full(missing, np.nan if values.dtype.kind == "f" else 0, dtype=values.dtype)


def _bytes(values: NDArray[Any]) -> Bytes:
    return values.reshape(-1).view(np.uint8)


def _pieces(data: Bytes) -> list[Bytes]:
    return [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]
