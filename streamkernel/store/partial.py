"""Whether an output may be made at a path or URL: one rule for both, applied before any work starts."""

from __future__ import annotations

import os
from pathlib import Path

from streamkernel.blobs import normalised, parent_of
from streamkernel.errors import StoreAccessError, StoreError
from streamkernel.outputs import Kind, check_output, translated_os_errors

__all__ = ["check_target"]


def check_target(path: str | os.PathLike[str], *, overwrite: bool = False, kind: Kind = "model") -> str | Path:
    """Refuse an output path or URL before any work starts; return it as an absolute path, or as text.

    Parameters
    ----------
    path
        Path or URL of the output. Missing parent folders are no error; nothing is created here. The first write finds
        out whether a URL may be written.
    overwrite
        Whether an existing output may be replaced. An empty folder may always be replaced.
    kind
        Kind of the output. Only a whole output of the same kind, without any file that we did not write, is ever
        replaced, so that a mistyped path costs no data.

    Raises
    ------
    StoreExistsError
        Something exists there and `overwrite` is false, or it may not be replaced.
    StoreAccessError
        The parent folder may not be written.
    """
    target = normalised(path)
    if isinstance(target, str):
        parent_of(target)  # not a whole bucket
        check_output(target, kind, overwrite=overwrite)
        return target
    with translated_os_errors(target, "checking"):
        check_output(target, kind, overwrite=overwrite)
        parent = next(folder for folder in target.parents if folder.exists())
        if not parent.is_dir():
            raise StoreError(f"{parent} is a file, so {target} cannot be made in it; choose another path")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise StoreAccessError(f"no permission to write in {parent}; choose another path or ask its owner")
    return target
