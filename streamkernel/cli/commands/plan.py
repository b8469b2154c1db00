"""streamkernel plan STORE"""

from __future__ import annotations

import click
from rich.table import Table as RichTable

from streamkernel.cli.fit_options import SECTIONS, fit_options
from streamkernel.cli.fit_request import planned_request
from streamkernel.cli.grouped_help import GroupedCommand
from streamkernel.cli.options import Resources, common
from streamkernel.cli.output import Display, Output, number
from streamkernel.cli.rule_options import RULES_AND_OPTIONS
from streamkernel.engine import format_bytes
from streamkernel.type_aliases import Fields, Unchecked


@click.command("plan", cls=GroupedCommand, sections=SECTIONS, epilog=RULES_AND_OPTIONS)
@click.argument("store")
@fit_options
@common
def command(store: str, resources: Resources, display: Display, **options: Unchecked) -> None:
    """Show the cost of a fit on STORE. No row is read."""
    _, request = planned_request(store, options, resources)
    plan = request.plan
    result: Fields = {
        "rows": request.table.n_rows,
        "basis_size": request.settings.components(request.table),
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
        "steps": [
            {"name": step.name, "where": step.where, "times": step.times, "rows": step.rows, "flops": step.flops}
            for step in plan.steps
        ],
    }
    shown = {
        name: format_bytes(value) if name.endswith("bytes") and value is not None else value
        for name, value in result.items()
        if name not in ("steps", "bytes_read", "flops", "kernel_entries")
    }
    if "total" not in request.limits.by:
        del shown["memory_limit_of"]
    shown["bytes read"] = format_bytes(plan.bytes_read)
    shown["flops"] = f"{plan.flops:.3g}"
    shown["kernel entries"] = f"{plan.kernel_entries:.3g}"
    display.emit(result, "plan", shown)
    if not display.as_json:
        steps = RichTable("step", "where", "times", "rows", "flops", box=None, header_style="dim", pad_edge=False)
        for step in plan.steps:
            steps.add_row(step.name, step.where, number(step.times), number(step.rows), f"{step.flops:.3g}")
        Output().table(steps)
