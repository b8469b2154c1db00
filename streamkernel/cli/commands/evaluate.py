"""streamkernel evaluate MODEL STORE"""

from __future__ import annotations

import click

from streamkernel.cli.execution import execution_target
from streamkernel.cli.options import Bounds, Resources, common, rows, run_options, weight
from streamkernel.cli.output import Display
from streamkernel.cli.saved_objects import predicting_model
from streamkernel.cli.tables_for_models import opened, session_for
from streamkernel.type_aliases import Fields


@click.command("evaluate")
@click.argument("model")
@click.argument("store")
@rows
@weight
@run_options
@common
def command(model: str, store: str, rows: Bounds, weight: str | None, resources: Resources, display: Display) -> None:
    """Score MODEL on the rows of STORE."""
    place = execution_target(resources)
    fitted = predicting_model(model)
    table = opened(fitted, store, rows, targets=True, weight=weight)
    work = fitted.scores()
    with session_for(work, fitted, table, place, display.quiet) as session:
        result = session.sweep(work, table, "evaluate")
    scores: Fields = result if isinstance(result, dict) else result.scalars
    display.emit(scores, f"{model} on {store}")
