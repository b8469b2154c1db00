"""streamkernel logs ID|MODEL"""

from __future__ import annotations

import json
import sys

import click

from streamkernel.cli.job_options import looking_options, moment
from streamkernel.cli.options import Scheduler, common
from streamkernel.cli.output import emit
from streamkernel.jobs import connect


@click.command("logs")
@click.argument("job", metavar="ID|MODEL")
@click.option("--follow", is_flag=True, help="Print until the job has ended; with --json one object on each line.")
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
    """Print the log of a job: when and where it began, its sweeps, its warnings, its end."""
    # The log is read from the job's records: no scheduler need answer.
    with connect(jobs=place) as session:
        found = session.job(job)
        if as_json and not follow:
            emit({"id": found.id, "events": list(found.logs())}, as_json=True, title="job")
            return
        for event in found.logs(follow=follow):
            if as_json:
                json.dump(event, sys.stdout)
                sys.stdout.write("\n")
            else:
                level = "" if event["level"] == "info" else f"{event['level']}: "
                print(f"{moment(event['time'])} {event['host']}:{event['process']} {level}{event['text']}")
            sys.stdout.flush()
