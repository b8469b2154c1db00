"""streamkernel compare STORE --estimators NAME,..."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import click
import numpy as np
from rich.table import Table as RichTable

from streamkernel.byte_counts import format_bytes
from streamkernel.cli.candidate_options import Setting, estimator_names, named_candidates, setting
from streamkernel.cli.column_options import COLUMNS, ColumnOptions, CsvOptions, column_options, csv_options
from streamkernel.cli.execution import execution_target, place_within, worker_share
from streamkernel.cli.file_sources import rows_of_fit
from streamkernel.cli.grouped_help import GroupedCommand, section_option
from streamkernel.cli.options import Bounds, Resources, common, cut, overwrite, rows, run_options, weight
from streamkernel.cli.output import Display, Output, number
from streamkernel.cli.progress import SweepBar
from streamkernel.comparison import Comparison, comparable, cross_validation, opened_for
from streamkernel.engine import resident_bytes
from streamkernel.errors import ParameterError
from streamkernel.report import check_report, write_comparison_report
from streamkernel.table import with_weights_of

_ESTIMATORS, _FOLDS = "Estimators", "Folds"
_NAME_WIDTH, _ERRORS_WIDTH = 18, 60  # characters: the tables fit into 80


@click.command("compare", cls=GroupedCommand, sections=(_ESTIMATORS, _FOLDS, COLUMNS))
@click.argument("store")
@section_option(
    _ESTIMATORS,
    "--estimators",
    type=estimator_names,
    required=True,
    metavar="NAME,...",
    help=f"The estimators to compare: {', '.join(comparable())}. NAME=ESTIMATOR gives one a name of its own, such as "
    "ridge,small=ridge.",
)
@section_option(
    _ESTIMATORS,
    "--set",
    "settings",
    type=setting,
    multiple=True,
    metavar="[NAME.]PARAMETER=VALUE",
    help="An option of fit for the estimator NAME, or for all that have it: basis=300, small.basis=50, "
    "ridge.intercept=no. May be repeated.",
)
@section_option(
    _ESTIMATORS,
    "--error",
    default=None,
    metavar="NAME",
    help="The error by which they are compared: rmse, mae, nlpd or deviance of numbers; relative_rmse of several "
    "targets, each in its standard deviations; error (the share of wrong classes), log_loss or brier of classes; "
    "pinball of quantiles. [default: the first that all have]",
)
@section_option(
    _FOLDS, "--folds", type=int, default=5, show_default=True, metavar="INTEGER", help="The number of folds, 2 to 100."
)
@section_option(
    _FOLDS,
    "--group",
    default=None,
    metavar="COLUMN",
    help="All rows of a group are in one fold; the column is no feature then. Groups of text are the column that --id "
    "names. [default: a hash of its features says in which fold a row is]",
)
@section_option(
    _FOLDS,
    "--time",
    default=None,
    metavar="COLUMN",
    help="Folds in the order of this column: each is fitted to all rows before it. The column is no feature then.",
)
@section_option(
    _FOLDS,
    "--share",
    is_flag=True,
    help="Take all folds of ridge and gp from the sums of one sweep, where rows are enough. A part of the rows is then "
    "in no fold, and one basis for all folds is chosen on it.",
)
@rows
@weight
@click.option("--report", default=None, metavar="OUT.html", help="Draw the comparison as one HTML page, too.")
@overwrite
@column_options
@csv_options
@run_options
@common
def command(
    store: str,
    estimators: list[tuple[str, str]],
    settings: tuple[Setting, ...],
    error: str | None,
    folds: int,
    group: str | None,
    time: str | None,
    share: bool,
    rows: Bounds,
    weight: str | None,
    report: str | None,
    overwrite: bool,
    kinds: ColumnOptions,
    csv: CsvOptions,
    resources: Resources,
    display: Display,
) -> None:
    """Compare estimators on the rows of STORE by cross-validation: each is fitted to all folds but one, in turn.

    STORE may be a CSV, Parquet or Arrow file, with --target, as of fit.
    """
    if report is not None:
        check_report(report, overwrite=overwrite)
    elif overwrite:
        raise ParameterError("--overwrite is for the page of --report; give --report, or leave it out")
    candidates = named_candidates(estimators, settings)
    place, driver_bytes = execution_target(resources), resident_bytes()
    with rows_of_fit(store, resources, display, weight=weight, kinds=kinds, csv=csv) as (source, left):
        table: Any = cut(with_weights_of(opened_for(candidates, source), left), rows)
        request = cross_validation(table, candidates, folds=folds, groups=group, time=time, error=error, share=share)
        limits = place.limits()
        # All fits are planned once for a number of workers: those of many rows of many folds take a while.
        planned_on = lru_cache(maxsize=1)(lambda machine: request.planned(machine, limits))
        place = place_within(place, resources, limits, lambda machine: planned_on(machine).plans, driver_bytes)
        planned = planned_on(place.machine(driver_bytes))
        planned.check_memory(limits)
        own_memory = worker_share(place, limits, max(planned.plans, key=lambda plan: plan.memory_bytes))
        with SweepBar(display.quiet, plans=planned.plans) as bar, place.executor(bar.note, own_memory) as executor:
            found = request.run(executor, bar, place.memory, planned)
    if report is not None:
        write_comparison_report(found, report, overwrite=overwrite)
    if display.as_json:
        display.emit(found.to_config(), "comparison")
    else:
        _print(found)


def _print(found: Comparison) -> None:
    console = Output()
    title = f"{found.best.name} has the least {found.error}" if len(found.estimators) > 1 else found.best.name
    console.print(f"{title}, {found.folds} folds by {found.by}", style="bold")
    console.print(f"fitted to {_range(found.fitted_rows)} rows, left out {_range(found.left_out_rows)}", style="dim")
    together = [each.name for each in found.estimators if each.shared]
    if together:
        console.print(f"all folds from one sweep, with one basis: {', '.join(together)}", style="dim")
    columns = ("estimator", found.error, "+-", "to best", "+-", "basis", "size", "seconds")
    table = RichTable(box=None, header_style="dim", pad_edge=False, collapse_padding=True)
    for position, name in enumerate(columns):
        most = _NAME_WIDTH if position == 0 else None
        table.add_column(name, justify="right" if position else "left", max_width=most, overflow="fold")
    for each in found.estimators:
        difference = found.difference(each.name)
        best = each is found.best
        table.add_row(
            each.name,
            f"{each.mean:.4g}",
            f"{each.standard_error:.2g}",
            "-" if best else f"{difference.mean:.3g}",
            "-" if best else f"{difference.standard_error:.2g}",
            number(int(np.mean(each.functions))),
            format_bytes(int(np.mean(each.model_bytes))),
            f"{each.seconds:.3g}",
        )
    console.table(table)
    console.print(f"{found.error} of each fold", style="dim")
    table = RichTable(box=None, show_header=False, pad_edge=False, collapse_padding=True)
    table.add_column(max_width=_NAME_WIDTH, overflow="fold")
    table.add_column(max_width=_ERRORS_WIDTH)
    for each in found.estimators:
        table.add_row(each.name, " ".join(f"{error:.4g}" for error in each.errors))
    console.table(table)


def _range(rows: tuple[int, ...]) -> str:
    least, most = min(rows), max(rows)
    return number(least) if least == most else f"{number(least)} to {number(most)}"
