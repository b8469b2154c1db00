"""Signals that end a command, at whatever stage: everything is put in order, then one line and the exit status.

A second one waits for nothing. Workers do not hear of those that a terminal sends (`engine.terminal`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

__all__ = ["EndedBySignal", "ended_by_signals"]

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHOW_CURSOR, _ERASE_LINE = b"\x1b[?25h", b"\r\x1b[2K"  # a bar of progress may be there


class EndedBySignal(BaseException):
    """Not an error of the run: whoever cleans up after errors keeps its checkpoints."""

    def __init__(self, number: int, message: str | None = None) -> None:
        super().__init__(message or _said(number))
        self.number = number
        self.complete = message is not None

    @property
    def status(self) -> int:
        """The exit status that shells expect."""
        return 128 + self.number


def _said(number: int) -> str:
    return "interrupted by Ctrl-C" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


@contextlib.contextmanager
def ended_by_signals(hint: str, *, until_exit: bool, but: tuple[int, ...] = ()) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise `EndedBySignal` while the block runs, where nobody had other plans for them.

    Parameters
    ----------
    hint : what a second one's line has beside which signal it was.
    but : signals that are left alone.
    until_exit : leave a signal after the block, too, nothing but to end the process: of a program, not a library.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    plain = (signal.SIG_DFL, signal.default_int_handler)
    former = {
        number: handler for number in _ENDING if number not in but and (handler := signal.getsignal(number)) in plain
    }

    def at_once(number: int, frame: object) -> None:
        # Whatever runs is in the middle of something: nothing here may wait, or use a buffer.
        cursor, line = (_SHOW_CURSOR, _ERASE_LINE) if os.isatty(2) else (b"", b"")
        with contextlib.suppress(OSError):
            os.write(2, cursor + (b"" if said else line + f"error: {_said(number)}{hint}\n".encode()))
        os._exit(128 + number)

    def end(number: int, frame: object) -> None:
        for each in former:
            signal.signal(each, at_once)
        raise EndedBySignal(number)

    said: list[bool] = []
    for number in former:
        signal.signal(number, end)
    try:
        yield
    finally:
        said.append(True)
        for number, handler in former.items():
            signal.signal(number, at_once if until_exit else handler)
