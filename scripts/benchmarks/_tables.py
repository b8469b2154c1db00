"""Tables written to disk by blocks, as a user's ingest leaves them, and the peak memory of this process."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import zarr
from _peak import peak_bytes
from zarr.codecs import Crc32cCodec

from streamkernel import ingest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from data_sets import Rows

__all__ = ["peak_bytes", "write_store"]

BLOCK = 65_536


def write_store(path: Path, rows: Callable[[int, int], Rows], m: int, p: int, dtype: str) -> None:
    """Ingest m rows into a store; at no time is more than a block of them in memory.

    Parameters
    ----------
    rows : (start, count) -> Rows.
    """
    source = path.with_suffix(".source")
    group = zarr.open_group(source, mode="w")
    checked = {"compressors": [Crc32cCodec()]}
    X = group.create_array("X", shape=(m, p), chunks=(min(BLOCK, m), p), dtype=dtype, **checked)
    y = group.create_array("y", shape=(m,), chunks=(min(BLOCK, m),), dtype="float64", **checked)
    for start in range(0, m, BLOCK):
        part = rows(start, min(BLOCK, m - start))
        X[start : start + len(part.X)] = part.X.astype(np.dtype(dtype))
        y[start : start + len(part.X)] = part.y
    ingest(source, path, dtype="keep")
    shutil.rmtree(source)
