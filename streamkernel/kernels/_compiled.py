"""The compiled functions: each is compiled or loaded once per dtype, and once more if the cache was damaged."""

from __future__ import annotations

import contextlib
import hashlib
import platform
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from numba import config, float32, float64
from numba.core.errors import NumbaError

from streamkernel.atomic import HeldLock
from streamkernel.errors import StreamKernelWarning
from streamkernel.kernels import _loops
from streamkernel.kernels._formula import Transform
from streamkernel.kernels._functions import MOST_TURNS
from streamkernel.kernels._writer import compiled_writer, writer
from streamkernel.type_aliases import AnyArray, AnyDType, Float, Untyped

KINDS: dict[AnyDType, Any] = {np.dtype(np.float32): float32, np.dtype(np.float64): float64}


class Compiled:
    """The functions of `_loops` that Python code calls, and the writers of transforms; one signature per dtype each."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ready: set[tuple[str, AnyDType]] = set()
        self.writers: dict[tuple[Transform, AnyDType], Any] = {}
        self.warned = False

    def function(self, name: str, dtype: AnyDType) -> Untyped:
        """The function, compiled or loaded from the cache on the first call."""
        function = getattr(_loops, name)
        if (name, dtype) not in self.ready:
            with self.lock:
                if (name, dtype) not in self.ready:
                    self.compile_or_recover(function, _loops.signatures(KINDS[dtype])[name])
                    self.ready.add((name, dtype))
        return function

    def compile_or_recover(self, function: Untyped, signature: Untyped) -> None:
        """Compile `function` for `signature`, or load it from Numba's cache; a cache that cannot be read is cleared."""
        try:
            function.compile(signature)
        except NumbaError:  # an error in our code, not in the cache
            raise
        except Exception as error:  # a truncated file may raise any error while it is unpickled
            folder = function.stats.cache_path
            if folder is None:
                raise
            for index in Path(folder).glob("*.nbi"):  # one a function; what no index names is written anew
                index.unlink(missing_ok=True)
            function.compile(signature)
            self.warn_once(folder, error)

    def warn_once(self, folder: str, error: Exception) -> None:
        """Warn of a damaged cache, once in a process."""
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"Numba's cache in {folder} could not be read ({type(error).__name__}: {error});"
                " it was cleared and the loops compiled again",
                StreamKernelWarning,
                stacklevel=3,
            )

    def writer(self, transform: Transform, dtype: AnyDType) -> int:
        """The address of a transform's writer, compiled or loaded from the cache on the first call."""
        key = transform, dtype
        if key not in self.writers:
            with self.lock:
                if key not in self.writers:
                    self.writers[key] = self.writer_or_recover(transform, KINDS[dtype])
        return int(self.writers[key].address)

    def writer_or_recover(self, transform: Transform, kind: Untyped) -> Untyped:
        """A compiled writer; if its cache cannot be read, all writers' files are removed from it."""
        write, folder = writer(_loops.source_version(), transform.value, transform.power), _loops.fill.stats.cache_path
        if folder is None:
            return compiled_writer(write, kind, cache=False)
        try:
            return compiled_writer(write, kind, cache=True)
        except NumbaError:  # an error in our code, not in the cache
            raise
        except Exception as error:  # a truncated file may raise any error while it is unpickled
            for path in Path(folder).glob("_writer.write_*.nb[ci]"):
                path.unlink(missing_ok=True)
            self.warn_once(folder, error)
            return compiled_writer(write, kind, cache=True)

    def norms(self, rows: AnyArray, out: AnyArray) -> None:
        """Squared norms, ``out[i] = |x_i|^2``."""
        self.function("norms", rows.dtype)(rows, out)

    def signed(self, values: AnyArray, x: AnyArray, z: AnyArray, out: AnyArray) -> None:
        """``out[i, j] = values[i, j] sign(x_i - z_j)``, in one pass."""
        self.function("signed", values.dtype)(values, x, z, out)

    def circles(self, rows: AnyArray, periods: Float) -> AnyArray:
        """``(cos(2 pi x_j / period_j), sin(2 pi x_j / period_j))_j`` of each row, (b, 2p) in the dtype of the rows."""
        out = np.empty((len(rows), 2 * rows.shape[1]), rows.dtype)
        view = np.ascontiguousarray(rows).view()
        view.flags.writeable = False  # one compiled version for rows that may and may not be written
        inverses = 1.0 / periods
        if self.function("circles", rows.dtype)(view, periods, inverses, out):
            # Numbers of so many turns are rare: time does not matter. The remainder of a finite number is exact, and
            # others have none. All other numbers stay as they are: their bits must not depend on the rows beside them.
            x = view.astype(np.float64)
            with np.errstate(invalid="ignore", over="ignore"):
                near = np.where(np.abs(x * inverses) <= MOST_TURNS, x, np.fmod(x, periods))
            lost = ~np.isfinite(near)
            found = self.circles(np.where(lost, 0.0, near), periods)
            found[np.concatenate([lost, lost], axis=1)] = np.nan
            return found.astype(rows.dtype, copy=False)
        return out


compiled = Compiled()

# Seconds to wait for another process that compiles. There is a limit because that process may have been stopped.
_PATIENCE = 600.0


def cache_folder() -> Path | None:
    """Folder in which Numba keeps the compiled loops; None where it can write to none."""
    mark = _mark()
    return None if mark is None else mark.parent


def is_compiled() -> bool:
    """True if `compile_all` has completed before, on this type of machine, for these loops and this Numba."""
    mark = _mark()
    return mark is not None and mark.exists()


def compile_all(transforms: Iterable[Transform]) -> None:
    """Compile or load the loops, and these transforms. Of several processes one compiles, the others wait and load."""
    mark = _mark()
    with contextlib.nullcontext() if mark is None or mark.exists() else _alone(mark.with_suffix(".lock")):
        for name in _loops.signatures(float64):
            for dtype in KINDS:
                compiled.function(name, dtype)
        for transform in transforms:
            for dtype in KINDS:
                compiled.writer(transform, dtype)
        if mark is not None:
            with contextlib.suppress(OSError):
                mark.touch()


def _mark() -> Path | None:
    """Path of the file in Numba's cache folder that marks a complete compilation; None without a cache."""
    folder = _loops.fill.stats.cache_path
    if folder is None:
        return None
    # NUMBA_CPU_NAME asks for another processor than that of this machine.
    processor = config.CPU_NAME or llvmlite.binding.get_host_cpu_name(), config.CPU_FEATURES
    machine = (platform.machine(), *processor, numba.__version__, _loops.source_version())
    return Path(folder) / f"streamkernel-{hashlib.sha256(repr(machine).encode()).hexdigest()[:12]}.compiled"


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Exclude other processes by a lock on `path`, if the file system has locks."""
    lock, until = None, time.monotonic() + _PATIENCE
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        while (lock := HeldLock.acquire(path, create=True)) is None and time.monotonic() < until:
            time.sleep(0.1)
    try:
        yield
    finally:
        if lock is not None:
            lock.release()
