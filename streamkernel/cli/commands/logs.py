"""streamkernel logs ID|MODEL"""

from __future__ import annotations

import json
import sys

import click

from streamkernel.cli.job_options import JobPlace, moment, one_job
from streamkernel.cli.options import common
from streamkernel.cli.output import Display


@click.command("logs")
@click.option("--follow", is_flag=True, help="Print until the job has ended; with --json one object on each line.")
@one_job
@common
def command(name: str, follow: bool, jobs: JobPlace, display: Display) -> None:
    """Print the log of a job: when and where it began, its sweeps, its warnings, its end."""
    with jobs.records() as session:
        job = session.job(name)
        if display.as_json and not follow:
            display.emit({"id": job.id, "events": list(job.logs())}, "job")
            return
        for event in job.logs(follow=follow):
            if display.as_json:
                json.dump(event, sys.stdout)
                sys.stdout.write("\n")
            else:
                level = "" if event["level"] == "info" else f"{event['level']}: "
                print(f"{moment(event['time'])} {event['host']}:{event['process']} {level}{event['text']}")
            sys.stdout.flush()
