"""streamkernel evaluate MODEL STORE"""

from __future__ import annotations

import click

from streamkernel.cli.execution import execution_target
from streamkernel.cli.options import Scheduler, common, rows, run_options
from streamkernel.cli.output import emit
from streamkernel.cli.progress import SweepBar
from streamkernel.cli.saved_objects import predicting_model
from streamkernel.cli.tables_for_models import check_memory, opened
from streamkernel.engine import Session
from streamkernel.type_aliases import Fields


@click.command("evaluate")
@click.argument("model")
@click.argument("store")
@rows
@run_options
@common
def command(
    model: str,
    store: str,
    rows: tuple[int | None, int | None] | None,
    scheduler: Scheduler,
    workers: int | None,
    memory: str | None,
    as_json: bool,
    quiet: bool,
    debug: bool,
) -> None:
    """Score MODEL on the rows of STORE."""
    place = execution_target(scheduler, workers)
    fitted = predicting_model(model)
    table = opened(fitted, store, rows, targets=True)
    work = fitted.scores()
    check_memory(work, fitted, table, place, memory)
    with SweepBar(quiet) as bar, place.executor(bar.note) as executor:
        check_memory(work, fitted, table, place, memory, executor)
        found = Session(executor, progress=bar).sweep(work, table, "evaluate")
    scores: Fields = found if isinstance(found, dict) else found.scalars
    emit(scores, as_json=as_json, title=f"{model} on {store}")
