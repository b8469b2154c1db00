"""streamkernel jobs [LOCATION]"""

from __future__ import annotations

import os
import sys
from pathlib import PurePosixPath

import click
from rich.table import Table as RichTable

from streamkernel.blobs import is_url, local_path
from streamkernel.cli.job_options import looking_options, looking_session, moment
from streamkernel.cli.options import Scheduler, common
from streamkernel.cli.output import Output, emit
from streamkernel.errors import ParameterError, StoreNotFoundError
from streamkernel.jobs.records import DONE, UNREADABLE
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

    With --scheduler, jobs whose driver was lost continue there from their last checkpoints.
    """
    if location is None and place is None:
        raise ParameterError("which jobs? give their LOCATION, such as models/.jobs, or --jobs (STREAMKERNEL_JOBS)")
    if location is not None and not is_url(location) and not os.path.isdir(local_path(location)):
        raise StoreNotFoundError(f"there is no folder {location}; records of jobs are in .jobs beside their models")
    with looking_session(location or place, scheduler) as session:
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
        sweeps = _sweeps(told["status"], told["progress"])
        name = PurePosixPath(told["model"]).name
        table.add_row(told["id"], told["status"], told["estimator"], name, sweeps, moment(told["submitted"]))
    if found:
        Output().table(table)
    else:
        print("no jobs")
    for told in found:
        if told["status"] == UNREADABLE:
            print(f"warning: job {told['id']} is unreadable: {told['error']['message']}", file=sys.stderr)


def _sweeps(status: str, progress: FieldsView | None) -> str:
    """Sweeps done; unless the job is done also the planned number, which is that of the worst case."""
    if not progress:
        return "-"
    return str(progress["sweeps_done"]) + ("" if status == DONE else f"/{progress['sweeps_planned'] or '?'}")
