"""One file that is there whole or not at all."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from streamkernel.atomic import partial_sibling
from streamkernel.blobs import blobs_at, is_url, parent_of
from streamkernel.errors import StoreExistsError, StoreNotFoundError

__all__ = ["checked_output", "publish_file"]


def checked_output(path: str | PathLike[str], *, overwrite: bool) -> str | Path:
    """The path, or the URL, of a file to be written.

    Raises
    ------
    StoreNotFoundError
        Its folder does not exist.
    StoreExistsError
        It exists and may not be replaced, or is a folder.
    """
    if is_url(path):
        url = os.fspath(path)
        around, name = parent_of(url)
        if not overwrite and blobs_at(around).size(name) >= 0:
            raise StoreExistsError(f"{url} exists; choose another path or ask for overwrite")
        return url
    target = Path(path)
    if not target.parent.is_dir():
        raise StoreNotFoundError(f"there is no folder {target.parent} to write {target.name} into; make it first")
    if target.is_dir():
        raise StoreExistsError(f"{target} is a folder; give the name of a file in it")
    if not overwrite and os.path.lexists(target):
        raise StoreExistsError(f"{target} exists; choose another path or ask for overwrite")
    return target


def publish_file(target: str | Path, content: bytes, *, overwrite: bool) -> None:
    """Write beside the target, then rename (at a URL, in one go): a reader sees the old file, the new one, or none.

    Raises
    ------
    StoreExistsError
        Somebody else made the file meanwhile, and it may not be replaced.
    """
    if isinstance(target, str):
        around, name = parent_of(target)
        place = blobs_at(around)
        if overwrite:
            place.write(name, content)
        # Ours, if the answer to the first try was lost.
        elif not place.create(name, content) and place.read(name) != content:
            raise StoreExistsError(f"{target} exists; choose another path or ask for overwrite")
        return
    partial = partial_sibling(target)
    try:
        with open(partial, "xb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        if not overwrite:
            _claim(partial, target)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _claim(partial: Path, target: Path) -> None:
    """Give the file its name if nobody has it: link(2) refuses where rename(2) would replace."""
    try:
        os.link(partial, target)
    except FileExistsError as error:
        raise StoreExistsError(f"{target} exists; choose another path or ask for overwrite") from error
    except OSError:
        # A file system without hard links; whether the name was free was looked at before the work began.
        return
