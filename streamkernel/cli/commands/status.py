"""streamkernel status ID|MODEL"""

from __future__ import annotations

import time

import click

from streamkernel.cli.job_options import JobPlace, one_job, shown
from streamkernel.cli.options import common
from streamkernel.cli.output import Display
from streamkernel.cli.wording import text_of
from streamkernel.jobs import Job
from streamkernel.jobs.records import ENDED

_POLL = 0.5


@click.command("status")
@click.option("--follow", is_flag=True, help="Print until the job has ended; the exit status is 1 if it failed.")
@one_job
@common
def command(name: str, follow: bool, jobs: JobPlace, display: Display) -> None:
    """Show the progress of a job, which is named by its id or by its model.

    With --scheduler, a job whose driver was lost continues there from its last checkpoint.
    """
    with jobs.session_or_records() as session:
        job = session.job(name)
        if follow:
            _follow(job, display.quiet)
        result = job.to_config()
        # It may have been resumed in between.
        if result["error"] and (failure := job.failure) is not None:
            result["error"]["message"] = text_of(failure)
        display.emit(result, "job", shown(result))
        if follow:
            job.wait(0)


def _follow(job: Job, quiet: bool) -> None:
    # Here, because bars load the plans whose time they tell.
    from streamkernel.cli.progress import JobBar

    with JobBar(quiet) as bar:
        while True:
            status = job.refresh()
            bar.update(status, job.progress)
            if status in ENDED:
                return
            time.sleep(_POLL)
