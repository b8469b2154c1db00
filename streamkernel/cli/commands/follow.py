"""streamkernel follow STORE MODEL"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator

import click

from streamkernel.cli.execution import execution_target
from streamkernel.cli.options import Scheduler, common, run_options, stale_option
from streamkernel.cli.output import number
from streamkernel.cli.progress import SweepBar
from streamkernel.cli.saved_objects import updatable_model
from streamkernel.cli.wording import text_of
from streamkernel.engine.limits import parse_bytes
from streamkernel.errors import StreamKernelWarning
from streamkernel.following.follower import Fold, Followed, Follower, Limits
from streamkernel.following.stop import StopFlag
from streamkernel.type_aliases import Fields

_ENDED = {
    "stopped": "stopped",
    "once": "nothing more to fold in",
    "rows": "as many rows as asked for",
    "time": "as long as asked for",
}


@click.command("follow")
@click.argument("store")
@click.argument("model")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.01),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="The time between two checks of the store.",
)
@stale_option
@click.option(
    "--grow",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Add at most N basis functions if the basis is stale; STORE must hold all rows that MODEL has seen.",
)
@click.option("--once", is_flag=True, help="Fold in the rows that are there, then end.")
@click.option(
    "--until-rows", type=click.IntRange(min=1), default=None, metavar="N", help="End when MODEL has seen N rows."
)
@click.option(
    "--for", "seconds", type=click.FloatRange(min=0), default=None, metavar="SECONDS", help="End after this time."
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="The time to wait for a store that does not answer, or after another temporary error.",
)
@run_options
@common
def command(
    store: str,
    model: str,
    interval: float,
    stale: float,
    grow: int,
    once: bool,
    until_rows: int | None,
    seconds: float | None,
    patience: float,
    scheduler: Scheduler,
    workers: int | None,
    memory: str | None,
    as_json: bool,
    quiet: bool,
    debug: bool,
) -> None:
    """Fold rows into MODEL whenever they are appended to STORE, until SIGTERM or Ctrl-C.

    Each completed append is folded in exactly once, even if this command is killed and started again. MODEL is replaced
    in one step, so that a service can load the new model. Each fold prints one line; with --json one object.
    """
    place = execution_target(scheduler, workers)
    limit = parse_bytes(memory)
    lines = _Lines(as_json, quiet)
    # "always", because "once" would store the text of every warning for as long as the command runs.
    warnings.simplefilter("always", StreamKernelWarning)
    with SweepBar(quiet or not sys.stderr.isatty()) as bar, _stopped_by_signals() as stop:
        done = Follower(
            store=store,
            model=model,
            load=updatable_model,
            executor=lambda: place.executor(lines.noted),
            watcher=lines,
            options={"stale": stale, "grow": grow, "memory_limit": limit},
            interval=interval,
            patience=patience,
            limits=Limits(once, until_rows, seconds),
            stop=stop,
            progress=bar,
            own_rows=not place.workers,
        ).run()
    lines.ended(done)


class _Lines:
    """One line per event: results on stdout, errors on stderr."""

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self._json, self._quiet = as_json, quiet

    def noted(self, text: str) -> None:
        if not self._quiet:
            print(text, file=sys.stderr, flush=True)

    def folded(self, fold: Fold) -> None:
        if self._json:
            self._print({"event": "fold", **fold.to_dict()})
            return
        parts = [f"{fold.rows_folded:+,} rows, {fold.rows:,} in all, in {fold.seconds:.2f} s"]
        if fold.residual_of_new is not None:
            left = f"{number(fold.residual_of_new)} of them, {number(fold.residual_of_fit)} of those it was chosen from"
            parts.append(f"the basis leaves {left}{' (stale)' if fold.stale else ''}")
        if fold.grown:
            parts.append(f"{fold.grown} functions more, {fold.basis_size:,} in all")
        self._line("; ".join([*parts, f"digest {fold.digest[:12]}"]))

    def failed(self, error: Exception, seconds: float) -> None:
        print(
            f"waiting: tried again in {seconds:.3g} s: {' '.join(text_of(error).split())}", file=sys.stderr, flush=True
        )

    def recovered(self) -> None:
        print("waiting: over, it goes on", file=sys.stderr, flush=True)

    def ended(self, done: Followed) -> None:
        if self._json:
            self._print({"event": "end", **done.to_dict()})
            return
        self._line(
            f"{_ENDED[done.ended]}: {done.folds:,} folds of {done.rows_folded:,} rows in {done.seconds:.1f} s, "
            f"{done.rows:,} rows in all; digest {done.digest[:12]}"
        )

    def _line(self, text: str) -> None:
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", flush=True)

    def _print(self, values: Fields) -> None:
        print(json.dumps(values, allow_nan=False), flush=True)


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[StopFlag]:
    """A request to stop that SIGTERM, SIGINT and SIGHUP set; a second signal has its former effect."""
    stop = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    ending = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    former = {number: handler for number, handler in ending.items() if handler is not signal.SIG_IGN}  # nohup

    def say(number: int, frame: object) -> None:
        stop.set()
        signal.signal(number, former[signal.Signals(number)])

    for each in former:
        signal.signal(each, say)
    try:
        yield stop
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)
