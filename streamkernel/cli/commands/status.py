"""streamkernel status ID|MODEL"""

from __future__ import annotations

import time

import click

from streamkernel.cli.job_options import looking_options, looking_session, shown
from streamkernel.cli.options import Scheduler, common
from streamkernel.cli.output import emit
from streamkernel.cli.progress import JobBar
from streamkernel.cli.wording import text_of
from streamkernel.jobs import Job
from streamkernel.jobs.records import ENDED

_POLL = 0.5


@click.command("status")
@click.argument("job", metavar="ID|MODEL")
@click.option("--follow", is_flag=True, help="Print until the job has ended; the exit status is 1 if it failed.")
@looking_options
@common
def command(
    job: str,
    follow: bool,
    place: str | None,
    scheduler: Scheduler,
    as_json: bool,
    quiet: bool,
    debug: bool,
) -> None:
    """Show the progress of a job, which is named by its id or by its model.

    With --scheduler, a job whose driver was lost continues there from its last checkpoint.
    """
    with looking_session(place, scheduler) as session:
        found = session.job(job)
        if follow:
            _follow(found, quiet)
        told = found.to_config()
        if told["error"]:
            told["error"]["message"] = text_of(found.failure)
        emit(told, as_json=as_json, title="job", shown=shown(told))
        if follow:
            found.wait(0)


def _follow(job: Job, quiet: bool) -> None:
    with JobBar(quiet) as bar:
        while True:
            status = job.refresh()
            bar.update(status, job.progress)
            if status in ENDED:
                return
            time.sleep(_POLL)
