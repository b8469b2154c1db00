"""Compilation of the kernels' loops, once per machine: announced, before processes start, outside any time-out."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from streamkernel.kernels import compile_all, is_compiled

Notify = Callable[[str], None]

_SECONDS = 2.0  # between the time to load compiled loops and the time to compile them
COMPILING = (
    "compiling the kernels for this machine: once after an installation, a minute or so, more where the machine is busy"
)


@contextlib.contextmanager
def notified_if_slow(notify: Notify, text: str) -> Iterator[None]:
    """Print `text` through `notify` if the block takes more than two seconds."""
    timer = threading.Timer(_SECONDS, notify, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def compile_here(notify: Notify) -> None:
    """Fill this machine's cache of compiled loops, if it is empty; a signal ends the wait at once.

    The compiler runs in its own thread, because a thread that compiles handles no signal before the end.
    """
    if is_compiled():
        return
    met: list[BaseException] = []

    def run() -> None:
        try:
            compile_all()
        except BaseException as error:
            met.append(error)

    thread = threading.Thread(target=run, name="streamkernel-compiler", daemon=True)
    with notified_if_slow(notify, COMPILING):
        thread.start()
        while thread.is_alive():
            thread.join(0.2)
    if met:
        raise met[0]
