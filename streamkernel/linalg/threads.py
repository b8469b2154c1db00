"""One BLAS thread: parallelism comes from the row blocks, and the bits do not depend on the cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

from streamkernel.linalg import _blas

__all__ = ["single_threaded_blas"]

_lock = Lock()
_depth = 0
_limiter = None


@cache
def _controller() -> ThreadpoolController:
    # Only libraries that are loaded can be found: SciPy's is by `_blas`, which every caller has imported.
    # Looking through the loaded libraries takes milliseconds: once a process is enough.
    assert _blas.__all__
    return ThreadpoolController()


def _take_control() -> None:
    """Let this thread set the limit: threadpoolctl heeds only the first thread that ever did, without a word."""
    for library in _controller().lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold every BLAS of this process at one thread; nested and concurrent uses share one limit.

    The limit is process-wide, so that the first to enter sets it and the last to leave restores it: otherwise a
    task that ends early would hand its neighbour's factorisation back to all cores, and its bits with them.
    """
    global _depth, _limiter
    with _lock:
        _depth += 1
        if _depth == 1:
            _take_control()
            _limiter = _controller().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and _limiter is not None:
                _take_control()
                _limiter.restore_original_limits()
                _limiter = None
                _take_control()
