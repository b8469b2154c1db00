"""streamkernel resume ID|MODEL"""

from __future__ import annotations

import click

from streamkernel.cli.job_options import job_session, looking_options
from streamkernel.cli.options import Scheduler, common
from streamkernel.cli.output import emit, stderr


@click.command("resume")
@click.argument("job", metavar="ID|MODEL")
@looking_options
@common
def command(
    job: str,
    place: str | None,
    scheduler: Scheduler,
    as_json: bool,
    quiet: bool,
    debug: bool,
) -> None:
    """Continue a job that was lost, failed or cancelled; it is named by its id or by its model.

    It continues from its last checkpoint; without a checkpoint it begins anew and says so.
    """
    with job_session(place, scheduler) as session:
        found = session.job(job)
        sweeps = found.resume()
        told = {"id": found.id, "status": found.status, "model": found.model, "checkpoints": sweeps}
        emit(told, as_json=as_json, title="job")
    if not quiet and not sweeps:
        stderr.print("no checkpoint is left of it (or seen from here): it begins with the first sweep", style="dim")
