"""A loop that Numba compiles once, and loads from its cache in later processes."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from numba import njit
from numba.core.errors import NumbaError

from streamkernel.type_aliases import Untyped

# Without `fastmath`, which would let the compiler change the order of sums from one processor to another.
_OPTIONS = {"nogil": True, "error_model": "numpy"}


def source_version(path: str) -> str:
    """A digest of a source file.

    A loop has it as a variable of its closure, and so in its key in Numba's cache, which otherwise sees no change in a
    file of the same time and size.
    """
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class CompiledLoop:
    """A function with one signature, compiled at its first use.

    Parameters
    ----------
    function : the function, a closure over the `source_version` of its file.
    signature : Numba's types of its result and its arguments.
    """

    def __init__(self, function: Untyped, signature: Untyped) -> None:
        self._signature, self._lock, self._ready = signature, threading.Lock(), False
        try:
            self._loop = njit(cache=True, **_OPTIONS)(function)
        except RuntimeError:  # there is no writable folder for a cache: compile in every process
            self._loop = njit(**_OPTIONS)(function)

    def compiled(self) -> Untyped:
        """The compiled function."""
        if not self._ready:
            with self._lock:
                if not self._ready:
                    self._compile()
                    self._ready = True
        return self._loop

    def _compile(self) -> None:
        try:
            self._loop.compile(self._signature)
        except NumbaError:  # an error in our code, not in the cache
            raise
        except Exception:  # a truncated file may raise any error while it is unpickled
            self._loop = njit(**_OPTIONS)(self._loop.py_func)
            self._loop.compile(self._signature)
