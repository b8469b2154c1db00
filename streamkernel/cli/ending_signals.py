"""Signals that end a command at any stage: it cleans up, then prints one line and returns the exit status.

A second one waits for nothing. Workers do not hear of those that their whole group is sent (`engine.terminal`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHOW_CURSOR, _ERASE_LINE = b"\x1b[?25h", b"\r\x1b[2K"  # a progress bar may be visible


class EndedBySignal(BaseException):
    """A signal ended the command. It is not an error of the run: code that cleans up after errors keeps checkpoints."""

    def __init__(self, number: int, message: str | None = None) -> None:
        super().__init__(message or _said(number))
        self.number = number

    @property
    def status(self) -> int:
        """The exit status, as in shells: 128 + the signal's number."""
        return 128 + self.number


def _said(number: int) -> str:
    return "interrupted by Ctrl-C" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


_received: list[int] = []


def check_signals() -> None:
    """Raise `EndedBySignal` again for a signal whose exception was lost.

    The exception appears wherever the interpreter is at that moment. While a library is loaded, that may be a finaliser
    or a callback of a weak reference, from which no exception comes out.
    """
    if _received:
        raise EndedBySignal(_received[0])


@contextlib.contextmanager
def ended_by_signals(hint: str, *, until_exit: bool, but: tuple[int, ...] = ()) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise `EndedBySignal` while the block runs, unless they had another handler before.

    Parameters
    ----------
    hint : text after the signal's name in the line that a second signal prints.
    but : signals that keep their handlers.
    until_exit : let a signal after the block end the process at once, too; for a program, not for a library.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    plain = (signal.SIG_DFL, signal.default_int_handler)
    former = {
        number: handler for number in _ENDING if number not in but and (handler := signal.getsignal(number)) in plain
    }

    def at_once(number: int, frame: object) -> None:
        # The signal interrupts any code: nothing here may wait, or use a buffer.
        cursor, line = (_SHOW_CURSOR, _ERASE_LINE) if os.isatty(2) else (b"", b"")
        with contextlib.suppress(OSError):
            os.write(2, cursor + (b"" if said else line + f"error: {_said(number)}{hint}\n".encode()))
        os._exit(128 + number)

    def end(number: int, frame: object) -> None:
        for each in former:
            signal.signal(each, at_once)
        _received.append(number)
        raise EndedBySignal(number)

    said: list[bool] = []
    for number in former:
        signal.signal(number, end)
    try:
        yield
    finally:
        said.append(True)
        _received.clear()
        for number, handler in former.items():
            signal.signal(number, at_once if until_exit else handler)
