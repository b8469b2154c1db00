"""One new file, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamkernel.atomic import fsync_path
from streamkernel.errors import StoreExistsError
from streamkernel.outputs.partial import PartialFolder
from streamkernel.wording import switch


@contextmanager
def new_file(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """A path for the block to write a file to, which then gets its name in one step.

    A reader sees the old file, the new one, or none. After an error the old one is there, and nothing else. What a
    killed process leaves is a `PartialFolder` beside `target`, which the next writer of the file removes.

    Raises
    ------
    StoreExistsError
        Another process made the file meanwhile, and it may not be replaced.
    """
    building = PartialFolder(target, None)
    partial = building.folder / target.name
    try:
        yield partial
        fsync_path(partial)
        if not overwrite:
            _claim(partial, target)
        os.replace(partial, target)
    finally:
        building.abandon()
    fsync_path(target.parent)


def _claim(partial: Path, target: Path) -> None:
    """Give the file its name if that is free: link(2) refuses an existing name, rename(2) would replace it."""
    try:
        os.link(partial, target)
    except FileExistsError as error:
        raise StoreExistsError(f"{target} exists; choose another path or {switch('overwrite')}") from error
    except OSError:
        # The file system has no hard links; the first check, before the work began, found the name free.
        return
