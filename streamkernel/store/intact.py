"""Which chunks of an unfinished output still hold what was noted of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from streamkernel.atomic import array_digest
from streamkernel.store.arrays import open_for_writing
from streamkernel.store.row_grid import RowGrid

__all__ = ["intact_chunks", "read_chunk"]


def read_chunk(array: zarr.Array[Any], file: Path, first: int, last: int) -> NDArray[Any] | None:
    """Rows [first, last) of `array`, the chunk in `file`; None if that is absent or damaged."""
    try:
        # Zarr would read an absent file as fill.
        return np.asarray(array[first:last]) if file.stat().st_size else None
    except FileNotFoundError:
        return None
    except OSError:
        raise
    except Exception:  # codecs raise ValueError, RuntimeError, ... for torn bytes
        return None


def intact_chunks(folder: Path, grid: RowGrid, noted: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Digest, by key, of every chunk that holds values of a digest that was noted for it."""
    intact = {}
    for name in grid.columns:
        array = open_for_writing(folder, name)
        for index, first, last in grid.chunks(0, grid.n_rows):
            key = grid.key(name, index)
            values = read_chunk(array, folder / key, first, last) if key in noted else None
            if values is not None and (digest := array_digest(values)) in noted[key]:
                intact[key] = digest
    return intact
