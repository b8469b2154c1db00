"""Measurements of one process: pure functions that run in the driver or as tasks of workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import available_cpus, eigen_flops
from streamkernel.kernels import Gaussian, Kernel, as_kernel
from streamkernel.linalg import single_threaded_blas, symmetric_eigen
from streamkernel.reductions.contract import add_states
from streamkernel.reductions.pools import PoolColumns, PoolGram
from streamkernel.reductions.sums import NormalEquations
from streamkernel.table import RowBlock, Table
from streamkernel.type_aliases import Fields

DTYPES = ("float32", "float64")
FAMILIES = (
    "gaussian", "matern", "laplacian", "rational_quadratic", "periodic", "hamming", "polynomial", "linear",
    "cosine", "arc_cosine", "sigmoid",
)  # fmt: skip
_FEATURES = (8, 64)
_ROWS, _POINTS = 2048, 512  # of a kernel block
_COLUMNS = (100, 300, 1000)  # of a sum
_SINGLE_COLUMNS = (*_COLUMNS, 2500)  # of one in float32: candidates are more than functions, and its rate still grows
_STATE = 1 << 21  # numbers
_ALGEBRA = 1000  # rows: smaller matrices are slower by operation, and take no time
_REPETITIONS = 5


def quickest(function: Callable[[], Any], repetitions: int = _REPETITIONS) -> float:
    """Least seconds of a call: whatever else the machine does can only add to them."""
    function()
    seconds = []
    for _ in range(repetitions):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def kernel_of(family: str, features: int) -> Kernel:
    """A kernel of the family, with a lengthscale near the median distance of normal rows."""
    lengthscale = float(np.sqrt(features))
    return as_kernel(family, lengthscale=lengthscale) if as_kernel(family).stationary else as_kernel(family)


def kernel_rates() -> list[Fields]:
    """Seconds for an entry of each family, fitted to two numbers of features."""
    rng, found = np.random.default_rng(0), []
    for family in FAMILIES:
        for dtype in DTYPES:
            times = []
            for features in _FEATURES:
                X, Z = (np.asarray(rng.random((rows, features)), dtype) for rows in (_ROWS, _POINTS))
                block, out = kernel_of(family, features).prepare(Z), np.empty((_ROWS, _POINTS), dtype)
                times.append(quickest(partial(block.block, X, out)) / out.size)
            per_feature = max(0.0, (times[1] - times[0]) / (_FEATURES[1] - _FEATURES[0]))
            seconds = max(times[0] - per_feature * _FEATURES[0], 0.1 * times[0])
            found.append({"family": family, "dtype": dtype, "seconds": seconds, "per_feature": per_feature})
    return found


def sum_work(dtype: str, columns: int, leading: int | None) -> tuple[NormalEquations, RowBlock]:
    """Sums of `columns` functions, and a block of rows."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((_ROWS, 8)).astype(dtype)
    points = rng.standard_normal((columns, 8)).astype(dtype)
    basis = Basis(Gaussian(1.0), points, np.arange(columns))
    return NormalEquations(basis, np.zeros(1), leading), RowBlock(0, X, rng.standard_normal((_ROWS, 1)))


def _beside(every: float, entries: float) -> float:
    """Seconds of a block's sums beside its kernel entries, which may seem to take all of them."""
    return max(every - entries, 0.05 * every)


def sum_rates() -> list[Fields]:
    """Operations a second of the sums, whitened by block and not, beside their kernel entries."""
    found = []
    with single_threaded_blas():
        for dtype in DTYPES:
            for columns in _COLUMNS:
                seconds = flops = 0.0
                for leading in (0, None):
                    work, block = sum_work(dtype, columns, leading)
                    state = work.empty()
                    every = quickest(partial(work.fold, state, block))
                    entries = quickest(partial(work.basis.prepared.block, block.X))
                    own = (columns**2 if leading == 0 else 2 * columns**2) + 2 * columns
                    seconds += _beside(every, entries)
                    flops += _ROWS * own
                found.append({"dtype": dtype, "columns": columns, "flops": flops / seconds})
    return found


def single_sum_rates() -> list[Fields]:
    """The same of sums of products in float32, which score the candidates of a selection."""
    found = []
    with single_threaded_blas():
        for columns in _SINGLE_COLUMNS:
            functions, block = sum_work("float32", columns, 0)
            basis = functions.basis
            # Four candidates for a function, as in the last round of a selection.
            cut = columns // 5
            chosen, pool = (Basis(basis.kernel, basis.points[s], basis.rows[s]) for s in (np.s_[:cut], np.s_[cut:]))
            work = PoolGram(PoolColumns(chosen, pool, np.zeros(1), np.dtype(np.float32)))
            state, out = work.empty(), np.empty((_ROWS, columns + 1), np.float32)
            every = quickest(partial(work.fold, state, block))
            entries = quickest(partial(work.columns.raw, block, out))
            own = work.flops_per_row() - 2.0 * columns * block.X.shape[1]
            found.append({"dtype": "float32", "columns": columns, "flops": _ROWS * own / _beside(every, entries)})
    return found


def memory_rate() -> float:
    """Bytes a second of a sum of two states: both are read, and one is written."""
    left, right = ({"sums": np.full(_STATE, value)} for value in (1.0, 2.0))
    return 3 * 8 * _STATE / quickest(lambda: add_states(left, right))


def algebra_rate() -> float:
    """Operations a second of an eigendecomposition."""
    A = np.random.default_rng(2).standard_normal((_ALGEBRA, _ALGEBRA))
    A = A + A.T
    with single_threaded_blas():
        return eigen_flops(_ALGEBRA) / quickest(lambda: symmetric_eigen(A), 2)


def core_rates() -> Fields:
    """All rates of a core, and the number of cores there are."""
    return {
        "cores": available_cpus(),
        "kernels": kernel_rates(),
        "sums": sum_rates(),
        "single_sums": single_sum_rates(),
        "memory_bytes": memory_rate(),
        "algebra_flops": algebra_rate(),
    }


def probe(seconds: float) -> float:
    """Blocks a second that a core sums, kernel entries included."""
    work, block = sum_work("float64", 300, 0)
    state, count = work.empty(), 0
    assert state is not None
    with single_threaded_blas():
        work.fold(state, block)
        began = time.perf_counter()
        while (taken := time.perf_counter() - began) < seconds:
            work.fold(state, block)
            count += 1
    return count / taken


def read_rate(table: Table, seconds: float, first: int = 0) -> tuple[int, float, float]:
    """Bytes of rows that are read, wall seconds, and seconds of the process's cores for it.

    Parameters
    ----------
    seconds : after these no other chunk is begun.
    first : the number of the chunk to begin with; after the last one the first one comes.
    """
    cuts = table.features.cuts(table.start, table.stop).tolist()
    row_bytes = table.n_features * table.dtype.itemsize + 8 * (table.n_targets + int(table.weights is not None))
    rows, index = 0, first
    began, cpu = time.perf_counter(), time.process_time()
    while rows == 0 or time.perf_counter() - began < seconds:
        at = index % (len(cuts) - 1)
        for block in table.blocks(cuts[at], cuts[at + 1], 8192):
            rows += len(block)
        index += 1
    return rows * row_bytes, time.perf_counter() - began, time.process_time() - cpu


def check_time(table: Table) -> float:
    """Seconds of the checks before and after a sweep: that the table is as it was when it was opened."""
    began = time.perf_counter()
    table.check_unchanged()
    table.check_read()
    return time.perf_counter() - began


def host() -> str:
    """The machine's name and processor, for people."""
    uname = os.uname()
    return f"{uname.nodename} ({uname.machine})"


def filled(count: int) -> np.ndarray[Any, Any]:
    """An array of this many float64."""
    return np.ones(count)


def size_of(array: np.ndarray[Any, Any]) -> int:
    """Its length: a task of one worker that needs what another one holds."""
    return len(array)


def middle(values: list[float]) -> float:
    """Their median."""
    return float(median(values))
