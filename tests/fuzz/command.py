"""The command line, run in this process on one input: what it says, and how it ends."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout

from streamkernel.cli import main
from streamkernel.errors import StreamKernelError

__all__ = ["Refused", "commanded"]


class Refused(StreamKernelError):
    """It ended with exit status 1 or 2 and one line, which is the message."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.outcome = f"status {status}"


def commanded(*arguments: object) -> None:
    """Run it; see `_checked` for what else must hold.

    Raises
    ------
    Refused
    """
    # As those of a terminal: what UTF-8 has no bytes for is an error on stdout, and escaped on stderr.
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
    with redirect_stdout(out), redirect_stderr(err):
        status = main([str(argument) for argument in arguments])
    _checked(status, *(stream.buffer.getvalue().decode() for stream in (out, err)), "--json" in arguments)


def _checked(status: int, out: str, err: str, as_json: bool) -> None:
    assert "Traceback" not in out + err, err
    lines = [line for line in err.splitlines() if line and not line.startswith("warning: ")]
    if status == 0:
        assert not lines, err
        assert not as_json or isinstance(json.loads(out), dict)
        return
    assert status in (1, 2), (status, err)
    assert lines, "it ended without a word"
    if status == 1:
        assert len(lines) == 1, err
        assert lines[0].startswith("error: ")
    else:  # usage: click's own lines, the last of which is the error
        assert lines[-1].startswith("Error: "), err
    assert not lines[-1].startswith("error: unexpected "), err
    raise Refused(status, lines[-1])
