"""Compilation of the kernels' loops, once per machine: announced, before processes start, outside any time-out."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from streamkernel.errors import StoreError
from streamkernel.kernels import cache_folder, compile_all, is_compiled
from streamkernel.linalg.few_rows import compile_few_rows
from streamkernel.linalg.pair_steps import compile_pair_steps

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


def compile_ahead(notify: Notify) -> str:
    """Compile the kernels' loops and those of solvers for this machine, so that no fit waits for it.

    Returns
    -------
    str
        The folder of Numba's cache, in which other processes find them.

    Raises
    ------
    StoreError
        Numba has no folder to which it can write: each process would compile anew.
    """
    folder = cache_folder()
    if folder is None:
        raise StoreError(
            "Numba can write to no folder for its cache, so that every process compiles the kernels anew; set "
            "NUMBA_CACHE_DIR to a folder that can be written to"
        )
    compile_here(notify)
    compile_pair_steps()
    compile_few_rows()
    return str(folder)


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
