"""Loops that Numba compiles: each once in a process, all of them once on a machine.

::

    loop = CompiledLoop(function, {dtype: signature}, version)      compiled or loaded at its first use
    loop.of(dtype)(rows, out)
    loops = CompiledLoops([loop, ...])
    loops.compile()                                                 ahead of the first use, by one of several processes

A function is a closure over the `source_version` of the files that it is made of. The variables of a closure are part
of the key of Numba's cache, which otherwise looks at the time and size of one file only; and a wheel gives every file
the same time.

Numba keeps an index for each name of a function, and files of code that the index numbers. It writes the index first.
If the disk is full then, or the process ends, the index gives the number of a file that may be there from before, with
the code of another dtype, processor or version; two processes that write one index do the same. So the name of a
function has a digest of all these: each index has one entry, and its file never had other code.

A damaged cache is cleared, with a warning, and the loops are compiled again. Where no cache can be written, as on a
full disk, they are compiled in every process.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import platform
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import llvmlite.binding
import numba
from numba import cfunc, config, njit
from numba.core.errors import NumbaError

from streamkernel.atomic import HeldLock
from streamkernel.errors import StreamKernelWarning
from streamkernel.type_aliases import AnyDType, Fields, Untyped

# `error_model`: a division by 0 is inf, without the branch that would raise an error and end the vector code. Without
# `fastmath`, which would let the compiler change the order of sums from one processor to another.
OPTIONS: Fields = {"nogil": True, "error_model": "numpy"}

# Seconds to wait for another process that compiles. There is a limit because that process may have been stopped.
_PATIENCE = 600.0
_MANY = 20_000  # objects that a later collection of garbage would take long to look through
_LOCK = threading.Lock()
_warned = threading.Event()


def source_version(paths: Iterable[Path]) -> int:
    """A hash of the text of these files and of this one, as a number >= 0: any of them may be part of compiled code."""
    digest = hashlib.sha256()
    for path in sorted({*paths, Path(__file__)}):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")


def _machine() -> tuple[object, ...]:
    """What code is compiled for, and by which Numba."""
    # NUMBA_CPU_NAME asks for another processor than that of this machine.
    processor = config.CPU_NAME or llvmlite.binding.get_host_cpu_name(), config.CPU_FEATURES
    return platform.machine(), *processor, numba.__version__


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


class Compiled(ABC):
    """A function with one signature for each dtype, compiled or loaded from the cache at the first use of each.

    Parameters
    ----------
    function : a closure over `version`.
    signatures : Numba's types of its result and its arguments, for each dtype.
    version : the `source_version` of all that is compiled into it.
    """

    def __init__(self, function: Callable[..., Any], signatures: Mapping[AnyDType, Untyped], version: int) -> None:
        self.function, self.signatures, self.version = function, signatures, version
        self._ready: dict[AnyDType, Untyped] = {}
        self.kept = True  # False if the disk did not take a compiled function

    def of(self, dtype: AnyDType) -> Untyped:
        """The compiled function."""
        ready = self._ready.get(dtype)
        return self._first(dtype) if ready is None else ready

    def named(self, dtype: AnyDType) -> FunctionType:
        """The function under a name of its own in the cache, for this dtype, processor and version."""
        of = cast(FunctionType, self.function)
        found = FunctionType(of.__code__, of.__globals__, of.__name__, of.__defaults__, of.__closure__)
        digest = _digest(_machine(), self.version, str(self.signatures[dtype]))
        found.__module__, found.__qualname__ = of.__module__, f"{of.__qualname__}_{digest}"
        return found

    @cached_property
    def cache_folder(self) -> Path | None:
        """Folder in which Numba keeps the compiled function; None where it can write to none."""
        try:
            return Path(njit(cache=True, **OPTIONS)(self.function).stats.cache_path)
        except RuntimeError:  # there is no writable folder for a cache: compile in every process
            return None

    def _first(self, dtype: AnyDType) -> Untyped:
        with _LOCK, _without_collections():
            if dtype not in self._ready:
                self._ready[dtype] = self._compile_or_recover(dtype)
        return self._ready[dtype]

    def _compile_or_recover(self, dtype: AnyDType) -> Untyped:
        folder = self.cache_folder
        if folder is None:
            return self._compile(dtype, cache=False)
        for cleared in (False, True):
            try:
                return self._compile(dtype, cache=True)
            except NumbaError:  # an error in our code, not in the cache
                raise
            except OSError:  # the disk is full, or a file is not ours to read; nothing in the folder is damaged
                break
            except Exception as error:  # a truncated file may raise any error while it is unpickled
                if cleared:  # its files are another user's, who alone may remove them
                    break
                _clear(folder)
                _warn_once(folder, error)
        self.kept = False
        return self._compile(dtype, cache=False)

    @abstractmethod
    def _compile(self, dtype: AnyDType, *, cache: bool) -> Untyped:
        """The function of this dtype, compiled, or loaded from the cache."""


class CompiledLoop(Compiled):
    """A function that Python code calls."""

    def _compile(self, dtype: AnyDType, *, cache: bool) -> Untyped:
        dispatcher = njit(cache=cache, **OPTIONS)(self.named(dtype))
        dispatcher.compile(self.signatures[dtype])
        return dispatcher


class CompiledCallback(Compiled):
    """A function that compiled code calls, by its ``address``."""

    def _compile(self, dtype: AnyDType, *, cache: bool) -> Untyped:
        return cfunc(self.signatures[dtype], cache=cache, **OPTIONS)(self.named(dtype))


def _clear(folder: Path) -> None:
    """Remove all that Numba keeps in a folder: the code first, so that no index is without the code that it names."""
    for suffix in ("nbc", "nbi"):
        for path in folder.glob(f"*.{suffix}"):
            with contextlib.suppress(OSError):
                path.unlink()


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Suspend the collection of garbage: the first function loads some 100,000 objects of Numba, which all stay.

    The collector would look them all through, with what was loaded before: .08 s of a fit of 4 s. They then count as
    old, as if it had; else it would do so later in the fit, for another .08 s. Later functions load few objects: for
    these the count of frozen ones, which walks through them all, would cost more than a collection.
    """
    if not gc.isenabled():  # perhaps by another thread, for a moment: what it turns on again stays on
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > _MANY and not gc.get_freeze_count():  # the user may have frozen some, before a fork
            gc.freeze()
            gc.unfreeze()  # to the oldest generation
        gc.enable()


def _warn_once(folder: Path, error: Exception) -> None:
    """Warn of a damaged cache, once in a process."""
    if not _warned.is_set():
        _warned.set()
        warnings.warn(
            f"Numba's cache in {folder} could not be read ({type(error).__name__}: {error});"
            " it was cleared and the loops compiled again",
            StreamKernelWarning,
            stacklevel=5,
        )


class CompiledLoops:
    """Functions that are compiled together, once on a machine, and the mark in Numba's cache that says so."""

    def __init__(self, loops: Iterable[Compiled]) -> None:
        self.loops = tuple(loops)

    @property
    def cache_folder(self) -> Path | None:
        """Folder of the mark, in which Numba keeps the first of the functions; None where it can write to none."""
        return self.loops[0].cache_folder

    @property
    def mark(self) -> Path | None:
        """Path of the file that marks a complete compilation on this type of machine; None without a cache."""
        if self.cache_folder is None:
            return None
        versions = sorted({loop.version for loop in self.loops})
        return self.cache_folder / f"streamkernel-{_digest(_machine(), versions)}.compiled"

    def are_compiled(self) -> bool:
        """True if `compile` has completed before, on this type of machine, for these functions and this Numba."""
        return self.mark is not None and self.mark.exists()

    def compile(self) -> None:
        """Compile or load all functions. Of several processes one compiles, the others wait and load."""
        mark = self.mark
        with contextlib.nullcontext() if mark is None or mark.exists() else _alone(mark.with_suffix(".lock")):
            for loop in self.loops:
                for dtype in loop.signatures:
                    loop.of(dtype)
            if mark is not None and all(loop.kept for loop in self.loops):
                with contextlib.suppress(OSError):
                    mark.touch()


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
