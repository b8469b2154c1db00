"""The bytes of a text file as UTF-8: decompressed by the last suffix of its name, and put from another encoding."""

from __future__ import annotations

import bz2
import codecs
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
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

COMPRESSIONS = (".gz", ".bz2", ".zst")
_MARKS = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zst": b"\x28\xb5\x2f\xfd"}
# Text of numbers has about so many times the size of its compressed form.
TYPICAL_RATIO = 2.2
_RECODED_BYTES = 1 << 18


@contextmanager
def plain_bytes(path: Path, label: str, encoding: str) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The content of a file as UTF-8 (unchecked, where that is its encoding), and the file itself, whose position tells
    how much of it is read.

    Raises
    ------
    SourceFormatError
        The compressed file is damaged, or not in this encoding.
    """
    with open(path, "rb") as raw:
        suffix = path.suffix.lower()
        if suffix not in COMPRESSIONS:
            yield _in_utf8(raw, encoding, label), raw
            return
        try:
            with _decompressed(raw, suffix) as plain:
                yield _in_utf8(plain, encoding, label), raw
        except (EOFError, zlib.error, OSError) as error:
            # The libraries raise an OSError without a number for damage.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            way_out = "fetch it again"
            if compression_of(path) != suffix:
                way_out = f"it does not begin as a {suffix} file; rename it by what it holds, such as rows.csv for text"
            raise SourceFormatError(
                f"{label}: the compressed file is damaged ({first_line(error)}); {way_out}"
            ) from error


def compression_of(path: Path) -> str | None:
    """The suffix of the compression that a file has by its first bytes; None for none of `COMPRESSIONS`."""
    with open(path, "rb") as file:
        begin = file.read(4)
    return next((suffix for suffix, mark in _MARKS.items() if begin.startswith(mark)), None)


def _decompressed(raw: BinaryIO, suffix: str) -> BinaryIO:
    # Python's gzip, unlike Arrow's, refuses a file whose checksum is wrong; Python 3.11 has no zstd.
    if suffix == ".gz":
        return cast(BinaryIO, gzip.open(raw))
    if suffix == ".bz2":
        return cast(BinaryIO, bz2.open(raw))
    return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"))


def _in_utf8(plain: BinaryIO, encoding: str, label: str) -> BinaryIO:
    return plain if encoding == "utf-8" else io.BufferedReader(_Recoded(plain, encoding, label))


class _Recoded(io.RawIOBase):
    """Text of another encoding as UTF-8, without a byte order mark."""

    def __init__(self, plain: BinaryIO, encoding: str, label: str) -> None:
        self._plain, self._encoding, self._label = plain, encoding, label
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready = memoryview(b"")
        self._line = 1

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Unchecked) -> int:
        """Fill a buffer; 0 at the end."""
        ended = False
        while not self._ready and not ended:
            content = self._plain.read(_RECODED_BYTES)
            ended = not content
            self._ready = memoryview(self._decoded(content, ended).encode("utf-8"))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _decoded(self, content: bytes, ended: bool) -> str:
        try:
            text = self._decoder.decode(content, ended)
        except UnicodeError as error:
            before = error.object[: error.start] if isinstance(error, UnicodeDecodeError) else b""
            line = self._line + before.decode(self._encoding, "ignore").count("\n")
            raise SourceFormatError(
                f"{self._label}:{line}:1: the line is not {self._encoding} ({first_line(error)}); give another "
                f"{option('encoding')}"
            ) from error
        self._line += text.count("\n")
        return text
