"""streamkernel resume ID|MODEL"""

from __future__ import annotations

import click

from streamkernel.cli.job_options import JobPlace, one_job
from streamkernel.cli.options import common
from streamkernel.cli.output import Display


@click.command("resume")
@one_job
@common
def command(name: str, jobs: JobPlace, display: Display) -> None:
    """Continue a job that was lost, failed or cancelled; it is named by its id or by its model.

    It continues from its last checkpoint; without a checkpoint it begins anew and says so.
    """
    with jobs.session() as session:
        job = session.job(name)
        sweeps = job.resume()
        result = {"id": job.id, "status": job.status, "model": job.model, "checkpoints": sweeps}
        display.emit(result, "job")
    if not sweeps:
        display.note("there is no checkpoint, or none that can be read here: the job begins with the first sweep")
