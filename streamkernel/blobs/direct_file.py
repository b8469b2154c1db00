"""Large files, written in pieces: directly, past the system's page cache, where the file must be on the disk at once.

Pages of a file that is larger than memory are of no use in that cache, and they cost more time than the computation of
their numbers.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import uuid
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamkernel.type_aliases import AnyArray, AnyDType

_BUFFER_BYTES = 1 << 20
_ALIGNED = 4096  # direct writes need addresses and sizes that are multiples of this, on every disk that we know
_DIRECT = getattr(os, "O_DIRECT", 0)  # Linux has it

Bytes = NDArray[np.uint8]


def write_file(file: Path, pieces: Iterable[Bytes], *, durable: bool) -> None:
    """Replace `file` by the pieces; a reader sees the old file or the new one, never a part.

    Parameters
    ----------
    pieces : best `page_aligned`, so that direct writes need no copy.
    durable : whether to return only when the file is on the disk.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.{uuid.uuid4().hex}.partial")
    try:
        with _PieceWriter(temporary, direct=durable) as writer:
            for piece in pieces:
                writer.write(piece)
            writer.finish(durable=durable)
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def page_aligned(shape: tuple[int, ...], dtype: AnyDType) -> AnyArray:
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
        self.buffer = page_aligned((_BUFFER_BYTES,), np.dtype(np.uint8))
        self.filled, self.size = 0, 0

    def write(self, data: Bytes) -> None:
        """Append bytes."""
        self.size += len(data)
        if not self.filled and data.ctypes.data % _ALIGNED == 0:
            whole = len(data) // _ALIGNED * _ALIGNED
            self._send(data[:whole].data)
            data = data[whole:]
        while len(data):
            part = data[: _BUFFER_BYTES - self.filled]
            self.buffer[self.filled : self.filled + len(part)] = part
            self.filled += len(part)
            data = data[len(part) :]
            if self.filled == _BUFFER_BYTES:
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
