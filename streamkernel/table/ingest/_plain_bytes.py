"""The bytes of a text file, decompressed by the last suffix of its name."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from streamkernel.blobs import first_line
from streamkernel.errors import SourceFormatError

COMPRESSIONS = (".gz", ".bz2", ".zst")
# Text of numbers has about so many times the size of its compressed form.
TYPICAL_RATIO = 2.2


@contextmanager
def plain_bytes(path: Path, label: str) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The content of a file, and the file itself, whose position tells how much of it is read.

    Raises
    ------
    SourceFormatError
        The compressed file is damaged.
    """
    with open(path, "rb") as raw:
        suffix = path.suffix.lower()
        if suffix not in COMPRESSIONS:
            yield raw, raw
            return
        try:
            with _decompressed(raw, suffix) as plain:
                yield plain, raw
        except (EOFError, zlib.error, OSError) as error:
            # The libraries raise an OSError without a number for damage.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise SourceFormatError(
                f"{label}: the compressed file is damaged ({first_line(error)}); fetch it again"
            ) from error


def _decompressed(raw: BinaryIO, suffix: str) -> BinaryIO:
    # Python's gzip, unlike Arrow's, refuses a file whose checksum is wrong; Python 3.11 has no zstd.
    if suffix == ".gz":
        return cast(BinaryIO, gzip.open(raw))
    if suffix == ".bz2":
        return cast(BinaryIO, bz2.open(raw))
    return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"))
