"""streamkernel fit STORE MODEL"""

from __future__ import annotations

import time

import click

from streamkernel.cli.checkpoints import checkpoints_of, kept_if_useful
from streamkernel.cli.fit_options import SECTIONS, fit_options
from streamkernel.cli.fit_request import planned_request
from streamkernel.cli.grouped_help import GroupedCommand
from streamkernel.cli.options import common, overwrite
from streamkernel.cli.output import emit, readable
from streamkernel.cli.progress import SweepBar
from streamkernel.cli.rule_options import RULES_AND_OPTIONS
from streamkernel.cli.sigterm import ends_after_sweep
from streamkernel.engine import Session, resident_bytes
from streamkernel.store import check_target
from streamkernel.type_aliases import Unchecked


@click.command("fit", cls=GroupedCommand, sections=SECTIONS, epilog=RULES_AND_OPTIONS)
@click.argument("store")
@click.argument("model")
@fit_options
@click.option("--resume", is_flag=True, help="Continue from the checkpoints of an interrupted run.")
@overwrite
@common
def command(
    store: str,
    model: str,
    resume: bool,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    debug: bool,
    **options: Unchecked,
) -> None:
    """Fit a kernel model on the table STORE and write it to MODEL."""
    target = check_target(model, overwrite=overwrite)
    kind, wanted = planned_request(store, options, resident_bytes())
    with (
        SweepBar(quiet) as bar,
        wanted.place.executor(bar.note, wanted.worker_bytes) as executor,
        kept_if_useful(checkpoints_of(target, wanted, resume)) as checkpoints,
        ends_after_sweep(bar, quiet) as watcher,
    ):
        began = time.perf_counter()
        fitted = kind.fit(
            wanted.table,
            wanted.settings,
            Session(executor, progress=watcher, checkpoints=checkpoints),
            whole=wanted.whole,
            memory_limit=wanted.memory,
            estimator=wanted.estimator,
            plan=wanted.plan_of_run,
        )
        fitted.save(target, overwrite=overwrite)
        seconds = time.perf_counter() - began
        checkpoints.discard()
    result = fitted.fit_summary(model, seconds)
    emit(result, as_json=as_json, title="model", shown=readable(result))
