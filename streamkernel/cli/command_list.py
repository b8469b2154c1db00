"""The list of commands, and the one place that turns errors into one line and an exit status."""

from __future__ import annotations

import contextlib
import errno
import gc
import signal
import sys
import traceback
import warnings
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TextIO

import click

from streamkernel.cli.ending_signals import EndedBySignal, check_signals
from streamkernel.cli.streams import checked_streams
from streamkernel.cli.wording import FLAGS, text_of
from streamkernel.errors import StreamKernelError, StreamKernelWarning
from streamkernel.wording import escaped

_COMMANDS = {
    "ingest": "write a source of rows as a Zarr table",
    "info": "describe a table, a model or a factor",
    "plan": "show the cost of a fit: sweeps, bytes, memory, time on any number of workers",
    "calibrate": "measure the rates by which plans compute times",
    "fit": "fit a kernel model on a table",
    "compare": "compare estimators by cross-validation",
    "factor": "write the low-rank factor of a table's kernel matrix",
    "compress": "write a small weighted table that stands for a large one",
    "update": "fold new rows into a model",
    "follow": "fold rows into a model whenever they are appended",
    "submit": "submit a fit to a cluster, as a job that outlives this process",
    "jobs": "list jobs, or remove jobs that have ended",
    "status": "show the progress of a job",
    "logs": "print the log of a job",
    "cancel": "stop a job",
    "resume": "continue a job that was lost, failed or cancelled",
    "evaluate": "score a model on a table",
    "predict": "write a model's predictions as Zarr",
    "transform": "write the features or components of rows as Zarr",
    "report": "draw a model, or factors, as one HTML page",
    "serve": "answer requests for predictions over HTTP",
    "warm-up": "compile the kernels ahead, so that no fit waits for it",
}


class _Commands(click.Group):
    """Loads a command's module when it is called, so that help and usage errors do not wait for heavy imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"streamkernel.cli.commands.{cmd_name.replace('-', '_')}").command
        if not gc.isenabled():  # `main` has turned it off
            gc.freeze()  # what is loaded stays, and need not be looked through again
            gc.enable()
        check_signals()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS and (near := get_close_matches(args[0], _COMMANDS, 1)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="streamkernel")
def streamkernel() -> None:
    """Kernel methods on data that does not fit in memory."""


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, StreamKernelWarning):
        print(f"warning: {text_of(message)}", file=sys.stderr)


def run(arguments: list[str]) -> int:
    """Run a command; the exit status: 0, 1 for an error of data or machine, 2 for usage."""
    with warnings.catch_warnings():
        # streamkernel's warnings are printed for the user, one line each; those of libraries are not.
        warnings.simplefilter("once", StreamKernelWarning)
        warnings.showwarning = _warn
        return _run(arguments, debug="--debug" in arguments)


def _run(arguments: list[str], *, debug: bool) -> int:
    try:
        with checked_streams():
            result: Any = streamkernel.main(arguments, prog_name="streamkernel", standalone_mode=False)
        return int(result) if isinstance(result, int) else 0
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption):
            error = _with_flag(error)
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        raise EndedBySignal(signal.SIGINT) from None
    except StreamKernelError as error:
        if debug:
            raise
        return _fail(text_of(error), 1)
    except BrokenPipeError:
        return 1
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            from streamkernel.blobs import store_error

            return _fail(str(store_error(error, "the path", "opening")), 1)
        if isinstance(error, OSError) and error.errno is not None and error.strerror:
            # The system's message with the path (such as a full disk) needs no traceback.
            what = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
            return _fail(f"{what}; check that disk or path, and run again (--debug shows the traceback)", 1)
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        return _fail(f"unexpected {type(error).__name__} at {where}: {error} (--debug shows the traceback)", 1)


def _with_flag(error: click.NoSuchOption) -> click.NoSuchOption:
    """The error, with the flag of a parameter of Python that has another name here, such as ``--n-components``."""
    flag = FLAGS.get(error.option_name.lstrip("-").replace("-", "_"))
    if error.ctx is not None and "--set" in _flags_of(error.ctx.command):
        given = flag or error.option_name
        fit = streamkernel.get_command(error.ctx, "fit")
        if fit is not None and given in _flags_of(fit):
            said = f"No such option '{error.option_name}'. Options of fit are given by --set {given.lstrip('-')}=VALUE."
            return click.NoSuchOption(error.option_name, said, ctx=error.ctx)
    if error.ctx is not None and flag in _flags_of(error.ctx.command):
        # click drops possibilities that do not look like what was given.
        said = f"No such option '{error.option_name}'. Did you mean '{flag}'?"
        return click.NoSuchOption(error.option_name, said, ctx=error.ctx)
    return error


def _flags_of(command: click.Command) -> set[str]:
    return {flag for parameter in command.params for flag in parameter.opts}


def _fail(message: str, status: int) -> int:
    with contextlib.suppress(OSError, AttributeError):  # stderr is closed
        print(f"error: {escaped(' '.join(message.split()))}", file=sys.stderr)
    return status
