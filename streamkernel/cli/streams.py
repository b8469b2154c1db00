"""stdout and stderr of a command: a failed write is an error on stdout, and ignored on stderr."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from streamkernel.errors import StoreError


class _Stream:
    """A stream whose writes are checked; all else is that of the stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Stdout(_Stream):
    """stdout: an incomplete result raises an error, but not a reader that has read enough (`| head -1`).

    What a write raised is raised again by all that follow: a library that tries a stream by writing nothing to it, as
    Click does, hides the error of an unbuffered one.
    """

    _failure: Exception | None = None

    def write(self, text: str) -> int:
        with self._checked():
            try:
                self._stream.write(text)
            except UnicodeEncodeError as error:
                # A path with bytes that are not text, or a terminal without the letter. The work is done, so print an
                # escape.
                self._stream.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
        return len(text)

    def flush(self) -> None:
        with self._checked():
            self._stream.flush()

    @contextlib.contextmanager
    def _checked(self) -> Iterator[None]:
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except BrokenPipeError as error:
            _drop(self._stream)
            self._failure = error
            raise
        except OSError as error:
            _drop(self._stream)
            self._failure = StoreError(
                f"the result cannot be written to stdout ({error.strerror or error}); the command's output is "
                "complete: check where stdout is redirected"
            )
            raise self._failure from error


class _Stderr(_Stream):
    """stderr: a failed write is ignored, because missing progress is no reason to end the work."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def _drop(stream: TextIO) -> None:
    """Send the rest of the buffer to /dev/null, or the interpreter would report an error at its exit."""
    with contextlib.suppress(OSError, ValueError, io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def checked_streams() -> Iterator[None]:
    """Replace stdout and stderr while a command runs; at its end all output is written, or an error is raised.

    Raises
    ------
    StoreError
        stdout cannot be written.
    """
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            # The stream is closed: the next opened file, such as a chunk, would get its number, and then the output.
            with contextlib.suppress(OSError):
                os.fstat(number)
                continue
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Stdout(out), _Stderr(err)
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout, sys.stderr = out, err
