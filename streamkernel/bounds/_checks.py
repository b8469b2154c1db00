"""Checks of the arguments of a bound, before anything is computed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.errors import ParameterError
from streamkernel.type_aliases import Float, Int


def checked_path(name: str, values: ArrayLike) -> Float:
    """`values` as (n,) finite non-negative float64, n >= 1; otherwise it raises `ParameterError`."""
    path = np.asarray(values, dtype=np.float64)
    if path.ndim != 1 or len(path) == 0:
        raise ParameterError(f"{name} has shape {path.shape}; give a one-dimensional sequence of at least one number")
    bad = np.flatnonzero(~(np.isfinite(path) & (path >= 0.0)))
    if len(bad):
        raise ParameterError(f"{name}[{bad[0]}] = {path[bad[0]]} is no finite number >= 0; leave such entries out")
    return path


def checked_sizes(sizes: ArrayLike | None, length: int, rows: int | None = None) -> Int:
    """The number of functions at each entry of a path: ascending integers from 0 to `rows`; 1, 2, ... for None."""
    numbers = np.arange(1, length + 1) if sizes is None else np.asarray(sizes)
    if numbers.shape != (length,):
        raise ParameterError(f"sizes has shape {numbers.shape} for a path of {length} entries; give one size per entry")
    if numbers.dtype.kind not in "iu" or numbers[0] < 0 or np.any(np.diff(numbers.astype(np.int64)) <= 0):
        raise ParameterError("sizes are not ascending whole numbers >= 0; give the number of functions at each entry")
    if rows is not None and numbers[-1] > rows:
        raise ParameterError(f"the path ends at {numbers[-1]} functions for {rows} rows; give at most one per row")
    return numbers.astype(np.int64)
