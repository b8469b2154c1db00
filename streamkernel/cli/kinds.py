"""What lies at a path: a table, a model or a factor."""

from __future__ import annotations

from pathlib import Path

from streamkernel.factors import BASIS, ROWS
from streamkernel.store import bundle_kind

__all__ = ["is_factor"]


def is_factor(path: str) -> bool:
    """Whether a factor is there, be it one that is not whole: then loading it says how to go on."""
    folder = Path(path)
    if bundle_kind(folder / BASIS) == "factor":
        return True
    try:
        names = {entry.name.lstrip(".").partition(".")[0] for entry in folder.iterdir()}
    except OSError:
        return False
    return bool(names) and names <= {BASIS, ROWS}
