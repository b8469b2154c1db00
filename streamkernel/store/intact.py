"""Reading a chunk of an unfinished output, if it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

__all__ = ["read_chunk"]


def read_chunk(array: zarr.Array[Any], file: Path, first: int, last: int) -> NDArray[Any] | None:
    """Rows [first, last) of `array`, which are the chunk in `file`; None if this is absent or damaged."""
    try:
        # Zarr would read an absent file as fill values.
        return np.asarray(array[first:last]) if file.stat().st_size else None
    except FileNotFoundError:
        return None
    except OSError:
        raise
    except Exception:  # codecs raise ValueError, RuntimeError, ... for torn bytes
        return None
