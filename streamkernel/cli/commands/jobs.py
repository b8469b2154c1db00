"""streamkernel jobs [LOCATION]"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import PurePosixPath

import click
from rich.table import Table as RichTable

from streamkernel.blobs import is_url, local_path
from streamkernel.cli.job_options import JobPlace, job_options, moment
from streamkernel.cli.options import common
from streamkernel.cli.output import Display, Output
from streamkernel.errors import ParameterError, StoreNotFoundError
from streamkernel.jobs.records import DONE, INTERRUPTED, UNREADABLE
from streamkernel.type_aliases import FieldsView


@click.command("jobs")
@click.argument("location", required=False)
@click.option(
    "--remove",
    "removed",
    multiple=True,
    metavar="ID",
    help="Remove the records, log and checkpoints of a job that has ended, but not its model; may be repeated.",
)
@job_options
@common
def command(location: str | None, removed: tuple[str, ...], jobs: JobPlace, display: Display) -> None:
    """List the jobs whose records are at LOCATION, such as models/.jobs (or --jobs), the oldest first.

    With --scheduler, jobs whose driver was lost continue there from their last checkpoints.
    """
    if location is None and jobs.place is None:
        raise ParameterError("which jobs? give their LOCATION, such as models/.jobs, or --jobs (STREAMKERNEL_JOBS)")
    if location is not None and not is_url(location) and not os.path.isdir(local_path(location)):
        raise StoreNotFoundError(f"there is no folder {location}; records of jobs are in .jobs beside their models")
    with replace(jobs, place=location or jobs.place).session_or_records() as session:
        if removed:
            for id in removed:
                session.remove(id)
            display.emit({"removed": list(removed)}, "jobs")
            return
        found = [job.to_config() for job in session.jobs()]
    if display.as_json:
        display.emit({"jobs": found}, "jobs")
        return
    table = RichTable(box=None, header_style="dim")
    table.add_column("id", no_wrap=True)
    for name in ("status", "estimator", "model", "sweeps", "submitted"):
        table.add_column(name, no_wrap=name == "status")
    for job in found:
        if job["status"] == UNREADABLE:
            table.add_row(job["id"], job["status"], *"----")
            continue
        progress = job["progress"]
        sweeps = _sweeps(job["status"], progress)
        name = PurePosixPath(job["model"]).name
        table.add_row(job["id"], job["status"], job["estimator"], name, sweeps, moment(job["submitted"]))
    if found:
        Output().table(table)
    else:
        print("no jobs")
    for job in found:
        if job["status"] == UNREADABLE:
            print(f"warning: job {job['id']} is unreadable: {job['error']['message']}", file=sys.stderr)
        elif job["status"] == INTERRUPTED and job["error"]:
            print(f"warning: job {job['id']} cannot go on: {job['error']['message']}", file=sys.stderr)


def _sweeps(status: str, progress: FieldsView | None) -> str:
    """Sweeps done; unless the job is done also the planned number, which is that of the worst case."""
    if not progress:
        return "-"
    return str(progress["sweeps_done"]) + ("" if status == DONE else f"/{progress['sweeps_planned'] or '?'}")
