"""streamkernel jobs [LOCATION]"""

from __future__ import annotations

import sys
from pathlib import PurePosixPath

import click
from rich.console import Console
from rich.table import Table as RichTable

from streamkernel.cli.job_options import job_session, looking_options, moment, records_of
from streamkernel.cli.options import Scheduler, common
from streamkernel.cli.output import emit
from streamkernel.jobs.records import UNREADABLE

__all__ = ["command"]


@click.command("jobs")
@click.argument("location", required=False)
@click.option(
    "--remove",
    "removed",
    multiple=True,
    metavar="ID",
    help="Remove the records, log and checkpoints of a job that has ended, never its model; may be given again.",
)
@looking_options
@common
def command(
    location: str | None,
    removed: tuple[str, ...],
    place: str | None,
    scheduler: Scheduler,
    as_json: bool,
    quiet: bool,
    debug: bool,
) -> None:
    """List the jobs whose records are at LOCATION, such as models/.jobs (or --jobs), the oldest first.

    With --scheduler those whose driver was lost are driven again there, from their last checkpoints.
    """
    with job_session(location or place, scheduler) as session:
        if removed:
            for id in removed:
                session.remove(id)
            emit({"removed": list(removed)}, as_json=as_json, title="jobs")
            return
        found = [job.to_config() for job in session.jobs()]
    if as_json:
        emit({"jobs": found}, as_json=True, title="jobs")
        return
    table = RichTable(box=None, header_style="dim")
    table.add_column("id", no_wrap=True)
    for name in ("status", "estimator", "model", "sweeps", "submitted"):
        table.add_column(name, no_wrap=name == "status")
    for told in found:
        if told["status"] == UNREADABLE:
            table.add_row(told["id"], told["status"], *"----")
            continue
        with records_of(told["id"], told["jobs"]):
            progress = told["progress"]
            sweeps = f"{progress['sweeps_done']}/{progress['sweeps_planned'] or '?'}" if progress else "-"
            name = PurePosixPath(told["model"]).name
            table.add_row(told["id"], told["status"], told["estimator"], name, sweeps, moment(told["submitted"]))
    Console(highlight=False).print(table if found else "no jobs")
    for told in found:
        if told["status"] == UNREADABLE:
            print(f"warning: job {told['id']} is unreadable: {told['error']['message']}", file=sys.stderr)
