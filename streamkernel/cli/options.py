"""Options that several commands share."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import click

from streamkernel.cli.grouped_help import MACHINE, section_option
from streamkernel.cli.output import Display
from streamkernel.type_aliases import Unchecked
from streamkernel.updating.staleness import STALE

F = TypeVar("F", bound=Callable[..., Any])

CORES_OF_THREADS = 4  # up to so many, threads are as fast as processes (`execution.default_place`)

Bounds = tuple[int | None, int | None] | None  # the value of `--rows`


def _bounds(value: str) -> Bounds:
    """A half-open slice A:B; either end may be left out."""
    match = re.fullmatch(r"(\d*):(\d*)", value)
    if not match:
        raise click.BadParameter(f"{value!r} is not a slice A:B of row numbers")
    first, last = match.groups()
    return (int(first) if first else None, int(last) if last else None)


class NumberOr(click.ParamType[Any]):
    """One of some words, a number, or numbers separated by commas; `kind` is float or int."""

    def __init__(self, *words: str, many: bool = False, kind: type = float) -> None:
        self.words = words
        self.many = many
        self.kind = kind
        self.name = "|".join([*(word.upper() for word in words), "INTEGER" if kind is int else "FLOAT"])

    def convert(self, value: Unchecked, param: click.Parameter | None, ctx: click.Context | None) -> Unchecked:
        if not isinstance(value, str) or value in self.words:
            return value
        try:
            numbers = [self.kind(part) for part in value.split(",")]
        except ValueError:
            words = " nor ".join([*map(repr, self.words), "a whole number" if self.kind is int else "a number"])
            self.fail(f"{value!r} is {'neither ' if self.words else 'not '}{words}", param, ctx)
        if len(numbers) == 1:
            return numbers[0]
        if not self.many:
            self.fail(f"{value!r}: one number is wanted", param, ctx)
        return numbers


def stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def as_one(name: str, kind: type) -> Callable[[F], F]:
    """Pass the options that are named by the fields of the dataclass `kind` to the command as one value, `name`."""
    names = [field.name for field in fields(kind)]

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(**options: Unchecked) -> Unchecked:
            value = kind(**{field: options.pop(field) for field in names})
            return function(**options, **{name: value})

        return command  # type: ignore[return-value]  # click hands over what the function names

    return decorate


common = stack(
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout; all else goes to stderr."),
    click.option("--quiet", is_flag=True, help="Show no progress."),
    # Read from the arguments by `command_list.run`, because it is of errors of the options, too.
    click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."),
    as_one("display", Display),
)

overwrite = click.option("--overwrite", is_flag=True, help="Replace an existing output when the new one is complete.")

stale_option = click.option(
    "--stale",
    type=click.FloatRange(min=0),
    default=STALE,
    show_default=True,
    metavar="FACTOR",
    help="Warn when the basis leaves more than FACTOR times as much of the new rows as of the rows of the fit.",
)

grow_option = click.option(
    "--grow",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Add at most N basis functions if the basis is stale; STORE must hold all rows, old and new.",
)


def seconds_option(
    flag: str, default: float | None, help: str, *, least: float = 0, name: str | None = None
) -> Callable[[F], F]:
    """An option for a time."""
    return click.option(
        *([flag] if name is None else [flag, name]),
        type=click.FloatRange(min=least),
        default=default,
        show_default=default is not None,
        metavar="SECONDS",
        help=help,
    )


rows = section_option(
    "Rows",
    "--rows",
    type=_bounds,
    metavar="A:B",
    default=None,
    help="The stored rows from A to B, without B. [default: all]",
)


@dataclass(frozen=True)
class Scheduler:
    """The value of `--scheduler` (`local`, `threads`, an address or None), and the options to reach that address."""

    address: str | None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    insecure: bool = False

    @property
    def here(self) -> bool:
        """Whether the work runs on this machine."""
        return self.address in (None, "local", "threads")


@dataclass(frozen=True)
class Resources:
    """The values of `--scheduler`, `--workers` and `--memory`."""

    scheduler: Scheduler
    workers: int | None = None
    memory: str | None = None


def _tls(what: str, help: str) -> Callable[[F], F]:
    return section_option(MACHINE, f"--tls-{what}", default=None, metavar="FILE", help=help)


# Of commands that have an option `--scheduler` with the name `address`; they get a `Scheduler`.
tls_options = stack(
    _tls("ca", "The certificate of the CA for tls://, PEM. [default: STREAMKERNEL_TLS_CA]"),
    _tls("cert", "The certificate of this client for tls://. [default: STREAMKERNEL_TLS_CERT]"),
    _tls("key", "The private key of this certificate. [default: STREAMKERNEL_TLS_KEY]"),
    section_option(
        MACHINE, "--insecure", is_flag=True, help="Connect to a scheduler on another machine without encryption."
    ),
    as_one("scheduler", Scheduler),
)

_WORKERS = section_option(
    MACHINE,
    "--workers",
    type=click.IntRange(min=1),
    default=None,
    metavar="INTEGER",
    help="The number of workers of the local cluster. [default: one for each core]",
)

_PLACE = stack(
    section_option(
        MACHINE,
        "--scheduler",
        "address",
        default=None,
        metavar="local|threads|ADDRESS",
        envvar="STREAMKERNEL_SCHEDULER",
        help="Where the work runs: a Dask cluster on this machine (local), threads of this process (threads), or the "
        f"scheduler at a tls:// or tcp:// address. [default: threads on up to {CORES_OF_THREADS} cores; local on more, "
        "and with --workers]",
    ),
    tls_options,
)

_MEMORY = stack(
    section_option(
        MACHINE,
        "--memory",
        default=None,
        metavar="BYTES",
        help="The limit on the memory of all processes together, such as 4GB. [default: the memory of this machine and "
        "of the workers]",
    ),
    as_one("resources", Resources),
)

run_options = stack(_PLACE, _WORKERS, _MEMORY)


class WorkerCounts(click.ParamType[Any]):
    """Numbers of workers, separated by commas."""

    name = "INTEGER,..."

    def convert(self, value: Unchecked, param: click.Parameter | None, ctx: click.Context | None) -> Unchecked:
        # Here, because the model of time loads the engine, which commands without this option do not need.
        from streamkernel.timing import worker_counts

        return worker_counts(value)


# Of `plan`, which starts nothing.
plan_run_options = stack(
    _PLACE,
    section_option(
        MACHINE,
        "--workers",
        type=WorkerCounts(),
        default=None,
        metavar="INTEGER,...",
        help="The number of workers of the local cluster; or several, such as 1,16,256: the time is shown for clusters "
        "of these sizes, in which each worker has a core. [default: one for each core]",
    ),
    section_option(
        MACHINE,
        "--cores",
        type=click.IntRange(min=1),
        default=None,
        metavar="INTEGER",
        help="The number of cores that several --workers share. [default: one for each worker]",
    ),
    section_option(
        MACHINE,
        "--rates",
        default=None,
        metavar="FILE",
        help="The rates by which times are computed, a file that streamkernel calibrate has written. [default: "
        "STREAMKERNEL_RATES, else those of this machine if they were measured, else built-in ones, which are slow]",
    ),
    _MEMORY,
)


weight = section_option(
    "Rows",
    "--weight",
    metavar="COLUMN|none",
    default=None,
    help="The column that is the weight of each row, and no feature then; none: every row counts once. [default: the "
    "weights of the table, if it was ingested with some]",
)


def cut(table: Unchecked, bounds: Bounds) -> Unchecked:
    """The rows A:B of a table."""
    if bounds is None:
        return table
    first, last = bounds
    return table.slice(table.start if first is None else first, table.stop if last is None else last)
