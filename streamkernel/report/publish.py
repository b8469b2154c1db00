"""Publishing of one file, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike
from pathlib import Path

from streamkernel.blobs import blobs_at, normalised, parent_of
from streamkernel.errors import ParameterError, StoreExistsError, StoreNotFoundError
from streamkernel.outputs import check_new_file, new_file, translated_os_errors
from streamkernel.wording import call, switch

# Marks near the beginning of our pages and of our pictures, which no other program writes.
PAGE = b'<meta name="generator" content="streamkernel">'
PICTURE = b"Software\0streamkernel"
_BEGINNING = 1 << 14
# Other programs go by the suffix of a name.
_SUFFIXES = {PAGE: (".html", ".htm"), PICTURE: (".png",)}


def checked_output(path: str | PathLike[str], *, overwrite: bool, mark: bytes = PAGE) -> str | Path:
    """Check the path or URL of a file to be written, and return it.

    Parameters
    ----------
    overwrite : whether an existing file may be replaced, if it has the `mark`, so that we have written it.

    Raises
    ------
    ParameterError
        Its name has the suffix of another kind of file.
    StoreNotFoundError
        Its folder does not exist.
    StoreExistsError
        The file exists and may not be replaced, or is a folder or a link; or it would be inside of another output.
    """
    target = normalised(path)
    _check_suffix(parent_of(target)[1] if isinstance(target, str) else target.name, mark)
    if isinstance(target, str):
        around, name = parent_of(target)
        blobs = blobs_at(around)
        if blobs.size(name) >= 0:
            _check_replaced(target, overwrite, mark, lambda: blobs.read(name, 0, _BEGINNING) or b"")
        else:
            check_new_file(target)
        return target
    check_new_file(target)
    if not target.parent.is_dir():
        raise StoreNotFoundError(f"there is no folder {target.parent} to write {target.name} into; make it first")
    if target.is_dir():
        raise StoreExistsError(f"{target} is a folder; give the name of a file in it")
    if os.path.lexists(target):
        _check_replaced(target, overwrite, mark, lambda: _beginning(target))
    return target


def _check_suffix(name: str, mark: bytes) -> None:
    suffix, ours = Path(name).suffix.lower(), _SUFFIXES[mark]
    if not suffix or suffix in ours:
        return
    if mark == PICTURE:
        raise ParameterError(f"{name}: a picture is written as PNG; choose a name that ends in .png")
    raise ParameterError(
        f"{name}: a report is a page of HTML; choose a name that ends in {' or '.join(ours)} (a picture of a model, in "
        f".png, is drawn by {call('draw_png')})"
    )


def _check_replaced(target: str | Path, overwrite: bool, mark: bytes, beginning: Callable[[], bytes]) -> None:
    if not overwrite:
        raise StoreExistsError(f"{target} exists; choose another path or {switch('overwrite')}")
    if mark not in beginning():
        what = "a report" if mark == PAGE else "a picture"
        raise StoreExistsError(
            f"{target} exists and is not {what} of streamkernel; remove it yourself or choose another path"
        )


def _beginning(path: Path) -> bytes:
    """The beginning of a file; empty if it is a link (links are not followed to be replaced) or not a file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _BEGINNING)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def publish_file(target: str | Path, content: bytes, *, overwrite: bool, mark: bytes = PAGE) -> None:
    """Write beside the target, then rename (at a URL, one put); a reader sees the old file, the new one, or none.

    Raises
    ------
    StoreExistsError
        Another process made the file meanwhile, and it may not be replaced.
    StoreError, StoreAccessError
        The disk is full or read-only.
    """
    if overwrite:
        # The first check was before the work began.
        checked_output(target, overwrite=True, mark=mark)
    if isinstance(target, str):
        around, name = parent_of(target)
        place = blobs_at(around)
        if overwrite:
            place.write(name, content)
        # The file is ours if the answer to the first try was lost.
        elif not place.create(name, content) and place.read(name) != content:
            raise StoreExistsError(f"{target} exists; choose another path or {switch('overwrite')}")
        return
    with (
        translated_os_errors(target, "writing"),
        new_file(target, overwrite=overwrite) as partial,
        open(partial, "xb") as handle,
    ):
        handle.write(content)
