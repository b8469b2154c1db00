"""Warnings of the package that a driver's thread issues, for the log of its job.

Filters of warnings belong to the whole process, which may drive other jobs at the same time. So the first driver sets
them, the last one restores them, and each gets the warnings of its own thread.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from streamkernel.errors import StreamKernelWarning
from streamkernel.type_aliases import Unchecked

_lock = threading.Lock()
_listeners: dict[int, Callable[[str], None]] = {}
_catching: list[tuple[warnings.catch_warnings[Any], Any]] = []


@contextlib.contextmanager
def warnings_to(listener: Callable[[str], None]) -> Iterator[None]:
    """Pass the warnings of this thread to `listener`, as text."""
    thread = threading.get_ident()
    with _lock:
        if not _listeners:
            catching = warnings.catch_warnings()
            catching.__enter__()
            _catching.append((catching, warnings.showwarning))
            warnings.simplefilter("always", StreamKernelWarning)
            warnings.showwarning = _show
        _listeners[thread] = listener
    try:
        yield
    finally:
        with _lock:
            del _listeners[thread]
            if not _listeners:
                _catching.pop()[0].__exit__(None, None, None)


def _show(message: Warning | str, category: type[Warning], *where: Any, **more: Unchecked) -> None:
    listener = _listeners.get(threading.get_ident())
    if listener is not None and issubclass(category, StreamKernelWarning):
        listener(str(message))
        return
    for _, show in _catching[-1:]:
        show(message, category, *where, **more)
