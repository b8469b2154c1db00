"""Compilation of all loops, once on a machine: announced, before processes start, outside any time-out."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from streamkernel.compiled_loops import CompiledLoops
from streamkernel.errors import StoreError
from streamkernel.kernels import loops_of_kernels
from streamkernel.linalg import loops_of_algebra

Notify = Callable[[str], None]

# All that Numba compiles; the mark is in the folder of the first one, the kernels'.
LOOPS = CompiledLoops((*loops_of_kernels(), *loops_of_algebra()))

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


def compile_ahead(notify: Notify) -> str:
    """Compile all loops for this machine, so that no fit waits for it.

    Returns
    -------
    str
        The folder of Numba's cache, in which other processes find them.

    Raises
    ------
    StoreError
        Numba has no folder to which it can write: each process would compile anew.
    """
    folder = LOOPS.cache_folder
    if folder is None:
        raise StoreError(
            "Numba can write to no folder for its cache, so that every process compiles the kernels anew; set "
            "NUMBA_CACHE_DIR to a folder that can be written to"
        )
    compile_here(notify)
    return str(folder)


def compile_here(notify: Notify) -> None:
    """Fill this machine's cache of compiled loops, if it is empty; a signal ends the wait at once.

    The compiler runs in its own thread, because a thread that compiles handles no signal before the end.
    """
    if LOOPS.are_compiled():
        return
    met: list[BaseException] = []

    def run() -> None:
        try:
            LOOPS.compile()
        except BaseException as error:
            met.append(error)

    thread = threading.Thread(target=run, name="streamkernel-compiler", daemon=True)
    with notified_if_slow(notify, COMPILING):
        thread.start()
        while thread.is_alive():
            thread.join(0.2)
    if met:
        raise met[0]
