"""One chunk of an uncompressed Zarr array as a file: its numbers, then their CRC32C.

The same bytes as Zarr's own codecs write, without the four copies that these make on the way.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

__all__ = ["write_chunk"]


def write_chunk(file: Path, values: NDArray[Any], shape: tuple[int, ...], *, durable: bool) -> None:
    """Replace `file` by the chunk: a reader sees the old one or the new, never a part.

    Parameters
    ----------
    values : the chunk, in little-endian byte order; at the end of an array it may be shorter than `shape`.
    shape : of a whole chunk.
    durable : return once it is on the disk.
    """
    data = np.ascontiguousarray(_padded(values, shape)).reshape(-1).view(np.uint8)
    checksum = np.array([google_crc32c.value(data)], dtype="<u4")
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.{uuid.uuid4().hex}.partial")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            for part in (data, checksum.view(np.uint8)):
                _write_all(descriptor, part.data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _padded(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if values.shape == shape:
        return values
    # What was never written must not look like numbers.
    whole = np.full(shape, np.nan if values.dtype.kind == "f" else 0, dtype=values.dtype)
    whole[tuple(slice(side) for side in values.shape)] = values
    return whole


def _write_all(descriptor: int, data: memoryview) -> None:
    while len(data):
        # One call writes at most 2 GB, and less on a disk that is filling up.
        data = data[os.write(descriptor, data) :]
