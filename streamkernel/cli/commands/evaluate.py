"""streamkernel evaluate MODEL STORE"""

from __future__ import annotations

import click

from streamkernel.cli.column_options import CsvOptions, csv_options, unknown_option
from streamkernel.cli.execution import execution_target
from streamkernel.cli.file_sources import rows_of_model
from streamkernel.cli.options import Bounds, Resources, common, rows, run_options, weight
from streamkernel.cli.output import Display
from streamkernel.cli.saved_objects import predicting_model
from streamkernel.cli.tables_for_models import opened, session_for
from streamkernel.type_aliases import Fields, FieldsView

_SHARES = ("r2", "d2")  # of a spread


@click.command("evaluate")
@click.argument("model")
@click.argument("store")
@rows
@weight
@unknown_option
@csv_options
@run_options
@common
def command(
    model: str,
    store: str,
    rows: Bounds,
    weight: str | None,
    unknown: str | None,
    csv: CsvOptions,
    resources: Resources,
    display: Display,
) -> None:
    """Score MODEL on the rows of STORE, a table, or a CSV, Parquet or Arrow file with its columns and its target."""
    place = execution_target(resources)
    fitted = predicting_model(model)
    work = fitted.scores()
    given = rows_of_model(fitted, store, resources, display, targets=True, weight=weight, unknown=unknown, csv=csv)
    with given as (found, left):
        table = opened(fitted, found, rows, targets=True, weight=left)
        with session_for(work, fitted, table, place, display.quiet) as session:
            result = session.sweep(work, table, "evaluate")
    scores: Fields = result if isinstance(result, dict) else result.scalars
    display.emit(scores, f"{model} on {store}", _readable(scores))


def _readable(scores: FieldsView) -> FieldsView:
    """The scores for display: one row has no spread of which a share could be explained."""
    if scores["rows"] >= 2:
        return scores
    undefined = {name: "undefined: one row has no spread to explain" for name in _SHARES if name in scores}
    return {name: value for name, value in scores.items() if name.removesuffix("_se") not in undefined} | undefined
