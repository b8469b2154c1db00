"""streamkernel fit STORE MODEL"""

from __future__ import annotations

import time

import click

from streamkernel.cli.checkpoints import resumable_session
from streamkernel.cli.column_options import COLUMNS, ColumnOptions, CsvOptions, column_options, csv_options
from streamkernel.cli.file_sources import rows_of_fit
from streamkernel.cli.fit_options import SECTIONS, fit_options
from streamkernel.cli.fit_request import planned_request
from streamkernel.cli.grouped_help import GroupedCommand
from streamkernel.cli.options import Resources, common, overwrite
from streamkernel.cli.output import Display, readable
from streamkernel.cli.rule_options import RULES_AND_OPTIONS
from streamkernel.engine import resident_bytes
from streamkernel.report.text import kernel_of
from streamkernel.store import check_target
from streamkernel.type_aliases import Unchecked


@click.command("fit", cls=GroupedCommand, sections=(*SECTIONS, COLUMNS), epilog=RULES_AND_OPTIONS)
@click.argument("store")
@click.argument("model")
@fit_options
@column_options
@csv_options
@click.option("--resume", is_flag=True, help="Continue from the checkpoints of an interrupted run.")
@overwrite
@common
def command(
    store: str,
    model: str,
    kinds: ColumnOptions,
    csv: CsvOptions,
    resume: bool,
    overwrite: bool,
    resources: Resources,
    display: Display,
    **options: Unchecked,
) -> None:
    """Fit a kernel model on the table STORE and write it to MODEL.

    STORE may be a CSV, Parquet or Arrow file, with --target: it is ingested on the way, into the temporary folder.
    --schema auto takes its columns as they come: categories, dates, and missing values.
    """
    output = check_target(model, overwrite=overwrite)
    given = rows_of_fit(store, resources, display, weight=options.get("weight"), kinds=kinds, csv=csv)
    with given as (found, weight):
        kind, request = planned_request(found, {**options, "weight": weight}, resources, resident_bytes())
        with resumable_session(request, output, resume, display) as session:
            began = time.perf_counter()
            fitted = kind.fit(
                request.table,
                request.settings,
                session,
                memory_limit=request.place.memory,
                plan=request.plan_of_run,
                **kind.options_of_fit(request.whole),
            )
            fitted.save(output, overwrite=overwrite)
            seconds = time.perf_counter() - began
    result = fitted.fit_summary(model, seconds)
    display.emit(result, "model", {**readable(result), "kernel": kernel_of(fitted)})
