"""streamkernel plan STORE"""

from __future__ import annotations

from dataclasses import replace

import click
from rich.table import Table as RichTable

from streamkernel.byte_counts import format_bytes
from streamkernel.cli.column_options import COLUMNS, ColumnOptions, CsvOptions, column_options, csv_options
from streamkernel.cli.file_sources import rows_of_fit
from streamkernel.cli.fit_options import SECTIONS, plan_options
from streamkernel.cli.fit_request import FitRequest, planned_request
from streamkernel.cli.grouped_help import GroupedCommand
from streamkernel.cli.options import Resources, common
from streamkernel.cli.output import Display, Output, number
from streamkernel.cli.rule_options import RULES_AND_OPTIONS
from streamkernel.errors import ParameterError
from streamkernel.fits.steps.run import size_of_fit
from streamkernel.planning import TimedPlan, timed_plan
from streamkernel.timing import read_rates
from streamkernel.type_aliases import Fields, Unchecked

# Of several numbers of workers: titles of the columns, and fields of the rows of `scaling`.
_COLUMNS = {
    "workers": "workers",
    "seconds": "seconds",
    "efficiency": "efficiency",
    "network": "network_bytes",
    "worker": "worker_bytes",
    "driver": "driver_bytes",
    "bound by": "bound",
}


@click.command("plan", cls=GroupedCommand, sections=(*SECTIONS, COLUMNS), epilog=RULES_AND_OPTIONS)
@click.argument("store")
@plan_options
@column_options
@csv_options
@common
def command(
    store: str,
    resources: Resources,
    cores: int | None,
    rates: str | None,
    kinds: ColumnOptions,
    csv: CsvOptions,
    display: Display,
    **options: Unchecked,
) -> None:
    """Show the cost of a fit on STORE, and its time on any number of workers. No row is read.

    A CSV, Parquet or Arrow file as STORE is ingested first, into the temporary folder.
    """
    resources, compared = _compared(resources)
    if cores is not None and compared is None:
        raise ParameterError("--cores is of several --workers, such as 1,4,16; leave it out, or give these")
    known = read_rates(rates)
    given = rows_of_fit(store, resources, display, weight=options.get("weight"), kinds=kinds, csv=csv)
    with given as (place, weight):
        _, request = planned_request(place, {**options, "weight": weight}, resources)
    found = timed_plan(
        request.plan,
        request.plan_on,
        known,
        workers=compared,
        cores=cores,
        here=not request.place.remote,
    )
    result = _result(request, found)
    display.emit(result, "plan", _shown(result, request, found))
    if known.measured is None:
        display.note("times are by built-in rates of a slow machine; measure yours: streamkernel calibrate")
    if not display.as_json:
        if len(found.scaling) > 1:
            Output().table(_scaling_table(found))
        Output().table(_steps_table(found))


def _compared(resources: Unchecked) -> tuple[Resources, list[int] | None]:
    """The resources of the run, and the numbers of workers to compare: several, or those of a remote cluster."""
    given: list[int] | None = resources.workers
    if given is None:
        return resources, None
    if len(given) == 1 and resources.scheduler.here:
        return replace(resources, workers=given[0]), None
    scheduler = resources.scheduler
    if scheduler.address is None:
        scheduler = replace(scheduler, address="local")  # numbers of workers are of clusters
    return replace(resources, scheduler=scheduler, workers=None), given


def _result(request: FitRequest, found: TimedPlan) -> Fields:
    plan = request.plan
    first = found.scaling[0]
    return {
        "rows": request.table.n_rows,
        "basis_size": size_of_fit(request.settings, request.table),  # with the warning that the fit would give
        "sweeps": plan.sweeps,
        "bytes_read": plan.bytes_read,
        "flops": plan.flops,
        "kernel_entries": plan.kernel_entries,
        "workers": plan.machine.workers,
        "threads": plan.machine.threads,
        "task_bytes": plan.task_bytes,
        "worker_bytes": plan.worker_bytes,
        "driver_bytes": plan.driver_bytes,
        "planned_memory_bytes": plan.memory_bytes,
        "memory_limit_bytes": request.limits.total,
        "memory_limit_of": request.limits.by.get("total"),
        "disk_bytes": plan.disk_bytes,
        "seconds": found.seconds,
        "efficiency": first.efficiency if len(found.scaling) == 1 else None,
        "rates": found.rates.measured,
        "scaling": [each.to_config() for each in found.scaling],
        "steps": [
            {
                "name": step.name,
                "where": step.where,
                "times": step.times,
                "rows": step.rows,
                "flops": step.flops,
                "seconds": seconds,
            }
            for step, seconds in zip(plan.steps, found.step_seconds, strict=True)
        ],
    }


def _shown(result: Fields, request: FitRequest, found: TimedPlan) -> Fields:
    plan = request.plan
    apart = ("steps", "scaling", "bytes_read", "flops", "kernel_entries", "seconds", "efficiency", "rates")
    shown = {
        name: format_bytes(value) if name.endswith("bytes") and value is not None else value
        for name, value in result.items()
        if name not in apart
    }
    if "total" not in request.limits.by:
        del shown["memory_limit_of"]
    shown["bytes read"] = format_bytes(plan.bytes_read)
    shown["flops"] = f"{plan.flops:.3g}"
    shown["kernel entries"] = f"{plan.kernel_entries:.3g}"
    shown["seconds"] = f"{found.seconds:.3g}"
    rough = found.scaling[0].rough_seconds if len(found.scaling) == 1 else 0.0
    if rough > 0.0:
        # They end when they have converged.
        shown["of searches, at most"] = f"{rough:.3g}"
    if result["efficiency"] is not None:
        shown["efficiency"] = f"{result['efficiency']:.3g}"
    shown["rates"] = found.rates.measured or "built in, those of a slow machine"
    return shown


def _scaling_table(found: TimedPlan) -> RichTable:
    table = RichTable(box=None, header_style="dim", pad_edge=False)
    for name in _COLUMNS:
        # A narrow terminal breaks a heading; it does not cut it.
        table.add_column(name, overflow="fold")
    for each in found.scaling:
        row = each.to_config()
        table.add_row(*(_cell(field, row[field]) for field in _COLUMNS.values()))
    return table


def _cell(field: str, value: Unchecked) -> str:
    if field.endswith("_bytes"):
        return format_bytes(value)
    return f"{value:.3g}" if isinstance(value, float) else number(value)


def _steps_table(found: TimedPlan) -> RichTable:
    steps = RichTable(
        "step", "where", "times", "rows", "seconds", "flops", box=None, header_style="dim", pad_edge=False
    )
    for step, seconds in zip(found.plan.steps, found.step_seconds, strict=True):
        steps.add_row(
            step.name, step.where, number(step.times), number(step.rows), f"{seconds:.3g}", f"{step.flops:.3g}"
        )
    return steps
