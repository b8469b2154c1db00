"""The compiled functions of kernels, as Python code calls them: one signature for float32 and one for float64."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import float32, float64

from streamkernel.compiled_loops import Compiled, CompiledCallback, CompiledLoop, source_version
from streamkernel.kernels.loops._loops import entry_points, signatures
from streamkernel.kernels.loops._writer import writer, writer_signature
from streamkernel.kernels.loops.formula import Transform
from streamkernel.kernels.loops.functions import MOST_TURNS
from streamkernel.type_aliases import AnyArray, AnyDType, Float

KINDS: dict[AnyDType, Any] = {np.dtype(np.float32): float32, np.dtype(np.float64): float64}
# Of all files of kernels: a transform stands in the file of its kernel.
VERSION = source_version(Path(__file__).parents[1].rglob("*.py"))


def _compiled_loops() -> Iterable[CompiledLoop]:
    of_kind = {dtype: signatures(kind) for dtype, kind in KINDS.items()}
    for function in entry_points(VERSION):
        name = function.__name__
        yield CompiledLoop(function, {dtype: by_name[name] for dtype, by_name in of_kind.items()}, VERSION)


LOOPS = NORMS, SIGNED, CIRCLES, FILL, SPARSE_NORMS, SPARSE_FILL = tuple(_compiled_loops())


@cache
def writer_of(transform: Transform) -> Compiled:
    """The writer of a transform; of each dtype it has an ``address``, which the loops call."""
    write = writer(VERSION, transform.value, transform.power)
    return CompiledCallback(write, {dtype: writer_signature(kind) for dtype, kind in KINDS.items()}, VERSION)


def norms(rows: AnyArray, out: AnyArray) -> None:
    """Squared norms, ``out[i] = |x_i|^2``."""
    NORMS.of(rows.dtype)(rows, out)


def signed(values: AnyArray, x: AnyArray, z: AnyArray, out: AnyArray) -> None:
    """``out[i, j] = values[i, j] sign(x_i - z_j)``, in one pass."""
    SIGNED.of(values.dtype)(values, x, z, out)


def circles(rows: AnyArray, periods: Float) -> AnyArray:
    """``(cos(2 pi x_j / period_j), sin(2 pi x_j / period_j))_j`` of each row, (b, 2p) in the dtype of the rows."""
    out = np.empty((len(rows), 2 * rows.shape[1]), rows.dtype)
    view = np.ascontiguousarray(rows).view()
    view.flags.writeable = False  # one compiled version for rows that may and may not be written
    inverses = 1.0 / periods
    if CIRCLES.of(rows.dtype)(view, periods, inverses, out):
        # Numbers of so many turns are rare: time does not matter. The remainder of a finite number is exact, and
        # others have none. All other numbers stay as they are: their bits must not depend on the rows beside them.
        x = view.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.where(np.abs(x * inverses) <= MOST_TURNS, x, np.fmod(x, periods))
        lost = ~np.isfinite(near)
        found = circles(np.where(lost, 0.0, near), periods)
        found[np.concatenate([lost, lost], axis=1)] = np.nan
        return found.astype(rows.dtype, copy=False)
    return out
