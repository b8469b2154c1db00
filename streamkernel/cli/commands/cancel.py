"""streamkernel cancel ID|MODEL"""

from __future__ import annotations

import click

from streamkernel.cli.job_options import JobPlace, one_job
from streamkernel.cli.options import common
from streamkernel.cli.output import Display


@click.command("cancel")
@click.option("--keep-checkpoints", is_flag=True, help="Keep the checkpoints, so that resume can continue from them.")
@one_job
@common
def command(name: str, keep_checkpoints: bool, jobs: JobPlace, display: Display) -> None:
    """Stop a job, which is named by its id or by its model. A running job stops within some seconds."""
    with jobs.records() as session:
        job = session.job(name)
        job.cancel(keep_checkpoints=keep_checkpoints)
        display.emit({"id": job.id, "status": job.status, "model": job.model}, "job")
