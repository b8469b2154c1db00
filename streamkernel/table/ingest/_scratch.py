"""Where copies of rows are kept while a table is written: beside it, for that is where there is room for its rows."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from streamkernel.outputs import PartialFolder


def scratch_folder(path: str | Path) -> PartialFolder:
    """A folder beside the store, or for a URL among temporary files; its user abandons it."""
    if isinstance(path, str):
        path = Path(tempfile.gettempdir(), f"streamkernel-{os.getuid()}")
    return PartialFolder(path, None)
