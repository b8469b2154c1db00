"""Entry point: it sets the signal handlers before it loads the commands, which takes a while."""

from __future__ import annotations

import gc
import shlex
import signal
import sys
from importlib import import_module
from typing import Any

from streamkernel.cli.ending_signals import EndedBySignal, ended_by_signals

# Commands that go on where they were interrupted, and how: with these options.
_RESUMED = {
    "fit": ["--resume"],
    "factor": ["--resume"],
    "compress": ["--resume"],
    "ingest": ["--repeated", "skip"],
}


def __getattr__(name: str) -> Any:
    if name != "streamkernel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("streamkernel.cli.command_list").streamkernel


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0, 1 for an error of data or machine, 2 for usage.

    After a signal it is the shells' status, 130 for Ctrl-C.
    """
    is_program = arguments is None
    if is_program:
        # Loading makes half a million objects, all of which stay: looking for garbage among them takes a quarter of the
        # start. `command_list` turns the collector on again when the command is loaded.
        gc.disable()
    arguments = sys.argv[1:] if arguments is None else arguments
    hint = _hint(arguments)
    try:
        # Each process of the service ends by itself when its terminal is closed: there is nothing to clean up.
        but = (signal.SIGHUP,) if arguments[:1] == ["serve"] else ()
        with ended_by_signals(hint, until_exit=is_program, but=but):
            status: int = import_module("streamkernel.cli.command_list").run(arguments)
            return status
    except EndedBySignal as end:
        print(f"error: {end}{hint}", file=sys.stderr)
        return end.status


def _hint(arguments: list[str]) -> str:
    """The command that goes on where a signal has ended one; empty where it is simply run again."""
    # What follows "--" is no option.
    options = arguments.index("--") if "--" in arguments else len(arguments)
    given = arguments[:options]
    more = _RESUMED.get(given[0]) if given else None
    # Of appended rows nobody knows whether they are there already.
    if more is None or (given[0] == "ingest" and "--append" not in given):
        return ""
    if any(each.partition("=")[0] == more[0] for each in given):
        more = []
    again = [*given, *more, *arguments[options:]]
    return f"; go on with: {shlex.join(['streamkernel', *again])}"
