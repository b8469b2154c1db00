"""Limit of one BLAS thread: row blocks run in parallel instead, and the bits do not depend on the number of cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

from streamkernel.linalg import _blas

_lock = Lock()
_depth = 0
_limiter = None


@cache
def _controller() -> ThreadpoolController:
    # threadpoolctl finds loaded libraries only; `_blas`, which every caller imports, loads that of SciPy.
    # The search takes milliseconds, so that it is done once per process.
    assert _blas.__name__
    return ThreadpoolController()


def _take_control() -> None:
    """Let this thread set the limit: threadpoolctl silently ignores all threads but the first that ever set one."""
    for library in _controller().lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit every BLAS of this process to one thread; nested and concurrent uses share one limit.

    The limit is process-wide. The first user sets it and the last one restores it. Otherwise a task that ends early
    would let the factorisation of a concurrent task run on all cores, which changes its bits.
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
