"""CSV from the standard input.

It is copied first, beside the store or among the temporary files: the first rows decide what the columns are, and the
line of a fault is found in a second look.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamkernel.blobs import translated_os_errors
from streamkernel.errors import ParameterError, SourceFormatError, StoreNotFoundError
from streamkernel.outputs import TemporaryFolder
from streamkernel.table.ingest._scratch import scratch_folder
from streamkernel.table.ingest.progress import Progress
from streamkernel.table.ingest.readers._plain_bytes import compression_of
from streamkernel.table.ingest.readers.files import SourceFile, several_sources
from streamkernel.type_aliases import Unchecked

LABEL = "standard input"
_NAMES = ("-", "/dev/stdin")
_COPY_BYTES = 1 << 20
_PROGRAMS = {".gz": "zcat", ".bz2": "bzcat", ".zst": "zstdcat"}


def is_standard_input(source: Unchecked) -> bool:
    """Whether a source is the standard input."""
    return isinstance(source, (str, os.PathLike)) and os.fspath(source) in _NAMES


@contextmanager
def received(source: Unchecked, store: str | Path | None, watcher: Progress) -> Iterator[Unchecked]:
    """The source; for the standard input a copy of it, which is there until the block is left.

    Parameters
    ----------
    store : where the rows go, beside which the copy is made; None where they go nowhere: among the temporary files.

    Raises
    ------
    ParameterError, StoreNotFoundError, SourceFormatError
        The standard input is one of several sources, closed, empty, or compressed.
    StoreError
        There is no room for a copy among the temporary files.
    """
    if several_sources(source) and any(map(is_standard_input, source)):
        raise ParameterError("the standard input cannot be one of several sources; ingest it, and append the others")
    if not is_standard_input(source):
        yield source
        return
    if sys.stdin is None:
        raise StoreNotFoundError("the standard input is closed; give the path of a source")
    with _room(store) as folder:
        copy = folder / "standard_input.csv"
        watcher.start(None, "bytes")
        try:
            with open(copy, "xb") as handle:
                while content := sys.stdin.buffer.read(_COPY_BYTES):
                    handle.write(content)
                    watcher.advance(len(content))
        finally:
            watcher.finish()
        if copy.stat().st_size == 0:
            raise SourceFormatError(f"{LABEL}:1:1: it is empty; give a header and rows")
        compression = compression_of(copy)
        if compression is not None:
            raise SourceFormatError(
                f"{LABEL}: it is compressed (as {compression} files are), and CSV text is wanted; send it through "
                f"{_PROGRAMS[compression]}, or give the path of the file"
            )
        yield SourceFile(copy, ".csv", "CSV", label=LABEL)


@contextmanager
def _room(store: str | Path | None) -> Iterator[Path]:
    """The folder of the copy."""
    if store is not None:
        with scratch_folder(store) as folder:
            yield folder
    else:
        with TemporaryFolder() as folder, translated_os_errors(folder, "copying the standard input to"):
            yield folder
