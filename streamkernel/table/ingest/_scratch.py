"""Where copies of rows are kept while a table is written: beside it, for that is where there is room for its rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamkernel.outputs import PartialFolder, TemporaryFolder


@contextmanager
def scratch_folder(path: str | Path) -> Iterator[Path]:
    """A folder beside the store, or for a URL among temporary files; removed after the block."""
    if isinstance(path, str):
        with TemporaryFolder() as folder:
            yield folder
        return
    beside = PartialFolder(path, None)
    try:
        yield beside.folder
    finally:
        beside.abandon()
