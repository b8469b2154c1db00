"""streamkernel follow STORE MODEL"""

from __future__ import annotations

import json
import signal
import sys
import time
import warnings

import click

from streamkernel.cli.ending_signals import ENDING, first_signal
from streamkernel.cli.execution import execution_target
from streamkernel.cli.options import Resources, common, grow_option, run_options, seconds_option, stale_option
from streamkernel.cli.output import Display, number
from streamkernel.cli.progress import SweepBar
from streamkernel.cli.saved_objects import updatable_model
from streamkernel.cli.wording import text_of
from streamkernel.errors import StreamKernelWarning
from streamkernel.following.follower import Fold, Followed, Follower, Limits
from streamkernel.following.stop import StopFlag
from streamkernel.type_aliases import Fields

_ENDED = {
    "stopped": "stopped",
    "once": "no more rows to fold in",
    "rows": "--until-rows reached",
    "time": "--for reached",
}


@click.command("follow")
@click.argument("store")
@click.argument("model")
@seconds_option("--interval", 2.0, "The time between two checks of the store.", least=0.01)
@stale_option
@grow_option
@click.option("--once", is_flag=True, help="Fold in the rows that are there, then end.")
@click.option(
    "--until-rows", type=click.IntRange(min=1), default=None, metavar="N", help="End when MODEL has seen N rows."
)
@seconds_option("--for", None, "End after this time.", name="seconds")
@seconds_option(
    "--patience", 3600.0, "The time to wait for a store that does not answer, or after another temporary error."
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
    resources: Resources,
    display: Display,
) -> None:
    """Fold rows into MODEL whenever they are appended to STORE, until SIGTERM or Ctrl-C.

    Each completed append is folded in exactly once, even if this command is killed and started again. MODEL is replaced
    in one step, so that a service can load the new model. Each fold prints one line; with --json one object.
    """
    place = execution_target(resources)
    lines = _Lines(display)
    # "always", because "once" would store the text of every warning for as long as the command runs.
    warnings.simplefilter("always", StreamKernelWarning)
    stop = StopFlag()
    numbers = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]  # nohup
    with SweepBar(display.quiet or not sys.stderr.isatty()) as bar, first_signal(numbers, stop.set):
        done = Follower(
            store=store,
            model=model,
            load=updatable_model,
            executor=lambda: place.executor(lines.note),
            watcher=lines,
            options={"stale": stale, "grow": grow, "memory_limit": place.memory},
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

    def __init__(self, display: Display) -> None:
        self._json, self._quiet = display.as_json, display.quiet

    def note(self, text: str) -> None:
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
            f"waiting: the next try is in {seconds:.3g} s: {' '.join(text_of(error).split())}",
            file=sys.stderr,
            flush=True,
        )

    def recovered(self) -> None:
        print("waiting is over", file=sys.stderr, flush=True)

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
