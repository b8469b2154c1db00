"""Shared parts of the job commands: the place of the records, the cluster, the display of a job."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import click

from streamkernel.cli.execution import execution_target
from streamkernel.cli.options import Scheduler, scheduler_as_one, stack, tls_options
from streamkernel.cli.output import stderr
from streamkernel.cli.wording import text_of
from streamkernel.engine import format_bytes
from streamkernel.errors import ClusterError
from streamkernel.jobs import JobsSession, connect
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

looking_options = stack(
    jobs_option,
    click.option(
        "--scheduler",
        default=None,
        metavar="ADDRESS",
        envvar="STREAMKERNEL_SCHEDULER",
        help="The tls:// or tcp:// address of a scheduler, which continues interrupted jobs.",
    ),
    tls_options,
    scheduler_as_one,
)


@contextlib.contextmanager
def job_session(place: str | None, scheduler: Scheduler) -> Iterator[JobsSession]:
    """A session; without a scheduler's address (or with "local" or "threads") it can only look at jobs."""
    with _connected(place, scheduler) as session:
        yield session


@contextlib.contextmanager
def looking_session(place: str | None, scheduler: Scheduler) -> Iterator[JobsSession]:
    """A session to look at jobs, from their records; it works also where the scheduler does not answer."""
    try:
        session = _connected(place, scheduler, timeout=_PATIENCE)
    except ClusterError as error:
        stderr.print(f"warning: {text_of(error)}; interrupted jobs stay interrupted", markup=False, soft_wrap=True)
        session = connect(jobs=place)
    with session:
        yield session


def _connected(place: str | None, scheduler: Scheduler, timeout: float = 10.0) -> JobsSession:
    address, security = None, None
    if scheduler.address not in (None, "local", "threads"):
        reached = execution_target(scheduler, None)
        address, security = reached.scheduler, reached.security
    return connect(address, security, jobs=place, insecure=scheduler.insecure, timeout=timeout)


def moment(seconds: float) -> str:
    """A time for display, in this machine's zone."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OSError, OverflowError, ValueError):  # a damaged record: it is in no year
        return f"{seconds:g} s"


def shown(told: FieldsView) -> Fields:
    """A job's description for display."""
    progress = told["progress"]
    lines: Fields = {
        "id": told["id"],
        "status": told["status"],
        "estimator": told["estimator"],
        "table": told["table"],
        "model": told["model"],
        "submitted": moment(told["submitted"]),
        "changed": moment(told["changed"]),
    }
    if progress:
        if progress["sweep"]:
            lines["sweep"] = (
                f"{progress['sweeps_done']} of {progress['sweeps_planned'] or '?'} done, {progress['sweep']}: "
                f"{progress['rows_done']:,} of {progress['rows_total']:,} rows"
            )
        lines |= {
            "driver": f"{progress['host']}:{progress['process']}, number {progress['attempt']}",
            "seconds": progress["seconds"],
            "peak memory": format_bytes(progress["peak_bytes"]),
        }
        if progress["planned_bytes"]:
            lines["planned memory"] = format_bytes(progress["planned_bytes"])
    if told["error"]:
        lines["error"] = f"{told['error']['type']}: {told['error']['message']}"
    if told["result"]:
        names = ("basis_size", "relative_residual_trace", "resumed_sweeps", "digest")
        lines |= {name: told["result"][name] for name in names}
    return lines
