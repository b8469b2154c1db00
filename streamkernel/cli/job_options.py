"""Shared parts of the job commands: the place of the records, the cluster, the display of a job."""

from __future__ import annotations

import time
from dataclasses import dataclass

import click

from streamkernel.byte_counts import format_bytes
from streamkernel.cli.options import Resources, Scheduler, as_one, stack, tls_options
from streamkernel.cli.output import duration, stderr
from streamkernel.cli.wording import text_of
from streamkernel.errors import ClusterError
from streamkernel.jobs import JobsSession, connect
from streamkernel.jobs.records import ENDED
from streamkernel.type_aliases import Fields, FieldsView

_PATIENCE = 2.0  # seconds to wait for a scheduler in a command that can do without it

jobs_option = click.option(
    "--jobs",
    "place",
    default=None,
    metavar="LOCATION",
    envvar="STREAMKERNEL_JOBS",
    help="The folder or URL of the records of jobs. [default: .jobs beside the model]",
)


@dataclass(frozen=True)
class JobPlace:
    """The values of `--jobs` and of the options of a scheduler."""

    place: str | None
    scheduler: Scheduler

    def records(self) -> JobsSession:
        """A session that only reads and writes the jobs' records: no scheduler need answer."""
        return connect(jobs=self.place)

    def session(self, timeout: float = 10.0) -> JobsSession:
        """A session with the scheduler; without its address one of records."""
        if self.scheduler.here:
            return connect(jobs=self.place, insecure=self.scheduler.insecure, timeout=timeout)
        # Here, because the engine takes long to load, and most of these commands are run without a scheduler.
        from streamkernel.cli.execution import execution_target

        target = execution_target(Resources(self.scheduler))
        return connect(target.scheduler, target.security, jobs=self.place, insecure=target.insecure, timeout=timeout)

    def session_or_records(self) -> JobsSession:
        """A session with the scheduler, or one of records with a warning where the scheduler does not answer."""
        try:
            return self.session(timeout=_PATIENCE)
        except ClusterError as error:
            stderr.print(f"warning: {text_of(error)}; interrupted jobs stay interrupted", markup=False, soft_wrap=True)
            return self.records()


# The commands get a `JobPlace`.
job_options = stack(
    jobs_option,
    click.option(
        "--scheduler",
        "address",
        default=None,
        metavar="ADDRESS",
        envvar="STREAMKERNEL_SCHEDULER",
        help="The tls:// or tcp:// address of a scheduler, which continues interrupted jobs.",
    ),
    tls_options,
    as_one("jobs", JobPlace),
)

# And the job that the command is about.
one_job = stack(click.argument("name", metavar="ID|MODEL"), job_options)


def moment(seconds: float) -> str:
    """A time for display, in this machine's zone."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OSError, OverflowError, ValueError):  # a damaged record: it is in no year
        return f"{seconds:g} s"


def shown(job: FieldsView) -> Fields:
    """A job's description for display."""
    progress = job["progress"]
    lines: Fields = {
        "id": job["id"],
        "status": job["status"],
        "estimator": job["estimator"],
        "table": job["table"],
        "model": job["model"],
        "submitted": moment(job["submitted"]),
        "changed": moment(job["changed"]),
    }
    if progress:
        if progress["sweep"]:
            lines["sweep"] = (
                f"{progress['sweeps_done']} of {progress['sweeps_planned'] or '?'} done, {progress['sweep']}: "
                f"{progress['rows_done']:,} of {progress['rows_total']:,} rows"
            )
        if progress.get("share") is not None and job["status"] not in ENDED:
            left = progress.get("seconds_left")
            lines["done"] = f"{progress['share']:.0%}" + ("" if left is None else f", about {duration(left)} left")
        lines |= {
            "driver": f"{progress['host']}:{progress['process']}, number {progress['attempt']}",
            "seconds": progress["seconds"],
            "peak memory": format_bytes(progress["peak_bytes"]),
        }
        if progress["planned_bytes"]:
            lines["planned memory"] = format_bytes(progress["planned_bytes"])
    if job["error"]:
        lines["error"] = f"{job['error']['type']}: {job['error']['message']}"
    if job["result"]:
        names = ("basis_size", "relative_residual_trace", "resumed_sweeps", "digest")
        lines |= {name: job["result"][name] for name in names}
    return lines
