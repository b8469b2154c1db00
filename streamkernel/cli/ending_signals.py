"""Signals that end a command at any stage: it cleans up, then prints one line and returns the exit status.

A second one waits for nothing. Workers do not hear of those that their whole group is sent (`engine.terminal`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamkernel.engine import Plan, ProgressOfPlans

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHOW_CURSOR, _ERASE_LINE = b"\x1b[?25h", b"\r\x1b[2K"  # a progress bar may be visible


class EndedBySignal(BaseException):
    """A signal ended the command. It is not an error of the run: code that cleans up after errors keeps checkpoints."""

    def __init__(self, number: int, message: str | None = None) -> None:
        super().__init__(message or _message(number))
        self.number = number

    @property
    def status(self) -> int:
        """The exit status, as in shells: 128 + the signal's number."""
        return 128 + self.number


def _message(number: int) -> str:
    return "interrupted by Ctrl-C" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


_received: list[int] = []


def check_signals() -> None:
    """Raise `EndedBySignal` again for a signal whose exception was lost.

    The exception appears wherever the interpreter is at that moment. That may be a finaliser or a callback of a weak
    reference, from which no exception comes out: a fit would then run on to its end.
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
    if not _can_handle():
        yield
        return
    plain = (signal.SIG_DFL, signal.default_int_handler)
    former = {
        number: handler for number in ENDING if number not in but and (handler := signal.getsignal(number)) in plain
    }
    in_block = True

    def at_once(number: int, frame: object) -> None:
        # The signal interrupts any code: nothing here may wait, or use a buffer.
        cursor, line = (_SHOW_CURSOR, _ERASE_LINE) if os.isatty(2) else (b"", b"")
        with contextlib.suppress(OSError):
            os.write(2, cursor + (line + f"error: {_message(number)}{hint}\n".encode() if in_block else b""))
        os._exit(128 + number)

    def end(number: int, frame: object) -> None:
        for each in former:
            signal.signal(each, at_once)
        _received.append(number)
        raise EndedBySignal(number)

    report = sys.unraisablehook

    def report_others(unraisable: sys.UnraisableHookArgs) -> None:
        # The interpreter would print the exception that it lost; `check_signals` raises it again.
        if not isinstance(unraisable.exc_value, EndedBySignal):
            report(unraisable)

    sys.unraisablehook = report_others
    for number in former:
        signal.signal(number, end)
    try:
        yield
    finally:
        in_block = False
        # A process that a signal has ended says so in one line. What its threads lose on their way out is no news.
        sys.unraisablehook = (lambda unraisable: None) if until_exit and _received else report
        _received.clear()
        for number, handler in former.items():
            signal.signal(number, at_once if until_exit else handler)


@contextlib.contextmanager
def first_signal(numbers: Iterable[int], action: Callable[[], object]) -> Iterator[None]:
    """Call `action` at the first of each of these signals in the block; a second one has its former effect."""
    if not _can_handle():
        yield
        return
    former = {number: signal.getsignal(number) for number in map(signal.Signals, numbers)}

    def handle(number: int, frame: object) -> None:
        signal.signal(number, former[signal.Signals(number)])
        action()

    for number in former:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _can_handle() -> bool:
    """Whether this thread may set handlers of signals."""
    return threading.current_thread() is threading.main_thread()


class _UntilSigterm:
    """A `Progress` that passes on each call to another one, and ends the session between two sweeps after SIGTERM."""

    def __init__(self, progress: ProgressOfPlans, quiet: bool) -> None:
        self._progress, self._quiet = progress, quiet
        self._ending = False

    def sigterm(self) -> None:
        self._ending = True
        if not self._quiet:
            # os.write, because the signal may interrupt the console in the middle of a write to its buffers.
            os.write(2, b"SIGTERM: ends after this sweep; a second one ends at once\n")

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self._end()
        self._progress.begin(name, rows, tasks)

    def advance(self, rows: int) -> None:
        check_signals()
        self._progress.advance(rows)

    def end(self, seconds: float) -> None:
        # A session reports the end of a sweep after its checkpoint is stored.
        self._progress.end(seconds)
        self._end()

    def note(self, text: str) -> None:
        self._progress.note(text)

    def planned(self, plan: Plan) -> None:
        self._progress.planned(plan)

    def passed(self, flops: float, share: float) -> None:
        self._progress.passed(flops, share)

    def _end(self) -> None:
        check_signals()
        if self._ending:
            raise EndedBySignal(signal.SIGTERM, "ended by SIGTERM between two sweeps")


@contextlib.contextmanager
def ends_after_sweep(progress: ProgressOfPlans, quiet: bool) -> Iterator[ProgressOfPlans]:
    """Yield the `Progress` for a session, with which SIGTERM ends it after the present sweep and its checkpoint.

    A second SIGTERM ends it at once.

    Raises
    ------
    EndedBySignal
    """
    until = _UntilSigterm(progress, quiet)
    with first_signal([signal.SIGTERM], until.sigterm):
        yield until
