"""Programs in processes of their own that are there at once: one process loads the libraries, and forks for each.

To load them takes a second of a core, and most programs of tests die after the first tenth of one. What measures its
memory, or how a process starts, starts one of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

__all__ = ["Forks"]

# Before a fork there are no threads: it loads, and does nothing. A child has the environment, the folder and the path
# of modules that the test has now. A function that a program replaces in its module stays in those that have it by
# name: replaced are methods, and functions of the module that calls them.
_SERVER = """
import json, os, sys, traceback
import streamkernel.cli.main, streamkernel.fits.factor, streamkernel.fits.ridge.ridge, streamkernel.table.ingest
from streamkernel.cli.commands import fit, update

def becomes(asked):
    for number, name in enumerate((os.devnull, asked["out"], asked["err"])):
        os.dup2(os.open(name, os.O_RDWR | os.O_APPEND), number)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.path[:] = asked["path"]
    sys.argv = ["-c", *asked["arguments"]]
    status = 1
    try:
        exec(compile(asked["code"], "<string>", "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(status)

for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if child == 0:
        becomes(asked)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Forks:
    """The process that loads the libraries.

    Parameters
    ----------
    folder : for what the programs print.
    """

    def __init__(self, folder: Path) -> None:
        self._out, self._err = (folder / name for name in ("out", "err"))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def run(self, code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, as ``python -c code arguments`` would."""
        for each in (self._out, self._err):
            each.write_text("")
        asked = {
            "code": code,
            "arguments": [str(each) for each in arguments],
            "out": str(self._out),
            "err": str(self._err),
            "folder": str(Path.cwd()),
            "environment": dict(os.environ),
            "path": [each for each in sys.path if each],
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        status = int(self._server.stdout.readline())
        return subprocess.CompletedProcess([code], status, self._out.read_text(), self._err.read_text())

    def __enter__(self) -> Forks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.communicate()
