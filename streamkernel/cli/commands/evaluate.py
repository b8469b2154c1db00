"""streamkernel evaluate MODEL STORE"""

from __future__ import annotations

from collections.abc import Sequence

import click

from streamkernel.cli.column_options import CsvOptions, csv_options, target_of_file, unknown_option
from streamkernel.cli.execution import execution_target
from streamkernel.cli.file_sources import rows_of_model
from streamkernel.cli.options import Bounds, Resources, common, rows, run_options, weight
from streamkernel.cli.output import Display
from streamkernel.cli.saved_objects import predicting_model
from streamkernel.cli.tables_for_models import opened, session_for
from streamkernel.reductions.scores.standard_errors import SUFFIX
from streamkernel.type_aliases import Fields, FieldsView, Unchecked

_SHARES = ("r2", "d2")  # of a spread
_SHOWN_TARGETS = 8  # with lines of their own


@click.command("evaluate")
@click.argument("model")
@click.argument("store")
@rows
@weight
@target_of_file
@unknown_option
@csv_options
@run_options
@common
def command(
    model: str,
    store: str,
    rows: Bounds,
    weight: str | None,
    target: tuple[str, ...],
    unknown: str | None,
    csv: CsvOptions,
    resources: Resources,
    display: Display,
) -> None:
    """Score MODEL on the rows of STORE, a table, or a CSV, Parquet or Arrow file with its columns and its target."""
    place = execution_target(resources)
    fitted = predicting_model(model)
    work = fitted.scores()
    given = rows_of_model(
        fitted, store, resources, display, targets=True, target=target, weight=weight, unknown=unknown, csv=csv
    )
    with given as (found, left):
        table = opened(fitted, found, rows, targets=True, weight=left)
        with session_for(work, fitted, table, place, display.quiet) as session:
            result = session.sweep(work, table, "evaluate")
    scores: Fields = result if isinstance(result, dict) else result.scalars
    if isinstance(scores.get("rmse"), list):
        scores = {"targets": list(table.target_names), **scores}
    display.emit(scores, f"{model} on {store}", _readable(scores))


def _readable(scores: FieldsView) -> FieldsView:
    """The scores for display: a line for each target, and one row has no spread of which a share could be explained."""
    targets = scores.get("targets", ())
    if 0 < len(targets) <= _SHOWN_TARGETS:
        scores = {line: value for name in scores if name != "targets" for line, value in _lines(name, scores, targets)}
    if scores["rows"] >= 2:
        return scores
    undefined = {name: "undefined: one row has no spread to explain" for name in _SHARES if name in scores}
    return {name: value for name, value in scores.items() if name.removesuffix("_se") not in undefined} | undefined


def _lines(name: str, scores: FieldsView, targets: Sequence[str]) -> list[tuple[str, Unchecked]]:
    """Names and values of the lines of a field; a list has a line for each target."""
    value = scores[name]
    if not isinstance(value, list):
        return [(name, value)]
    score, standard_error = name.removesuffix(SUFFIX), SUFFIX if name.endswith(SUFFIX) else ""
    return [(f"{score} of {target}{standard_error}", each) for target, each in zip(targets, value, strict=True)]
