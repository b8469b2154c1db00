"""streamkernel cancel ID|MODEL"""

from __future__ import annotations

import click

from streamkernel.cli.job_options import looking_options
from streamkernel.cli.options import Scheduler, common
from streamkernel.cli.output import emit
from streamkernel.jobs import connect


@click.command("cancel")
@click.argument("job", metavar="ID|MODEL")
@click.option("--keep-checkpoints", is_flag=True, help="Keep the checkpoints, so that resume can continue from them.")
@looking_options
@common
def command(
    job: str,
    keep_checkpoints: bool,
    place: str | None,
    scheduler: Scheduler,
    as_json: bool,
    quiet: bool,
    debug: bool,
) -> None:
    """Stop a job, which is named by its id or by its model. A running job stops within some seconds."""
    # Cancelling only reads and writes the job's records: no scheduler need answer.
    with connect(jobs=place) as session:
        found = session.job(job)
        found.cancel(keep_checkpoints=keep_checkpoints)
        emit({"id": found.id, "status": found.status, "model": found.model}, as_json=as_json, title="job")
