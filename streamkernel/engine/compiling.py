"""The kernels' loops are compiled once on a machine: announced, before processes are started, and outside of what has a
time-out."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from streamkernel.kernels import compile_all, is_compiled

__all__ = ["Tell", "compile_here", "told_if_slow"]

Tell = Callable[[str], None]

_SECONDS = 2.0  # less than it takes to compile, more than to load what was compiled before
COMPILING = (
    "compiling the kernels for this machine: once after an installation, a minute or so, more where the machine is busy"
)


@contextlib.contextmanager
def told_if_slow(tell: Tell, text: str) -> Iterator[None]:
    """Tell what goes on, if it still does after a moment."""
    timer = threading.Timer(_SECONDS, tell, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def compile_here(tell: Tell) -> None:
    """Have this machine's cache filled, where that was not done before; a signal ends the wait at once.

    In a thread of its own: a compiler hears of no signal before it is done.
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
    with told_if_slow(tell, COMPILING):
        thread.start()
        while thread.is_alive():
            thread.join(0.2)
    if met:
        raise met[0]
