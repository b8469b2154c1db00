"""streamkernel submit STORE MODEL"""

from __future__ import annotations

import click

from streamkernel.cli.execution import execution_target
from streamkernel.cli.file_sources import refuse_file
from streamkernel.cli.fit_options import SECTIONS, fit_options
from streamkernel.cli.fit_request import settings_given
from streamkernel.cli.grouped_help import GroupedCommand
from streamkernel.cli.job_options import JobPlace, jobs_option
from streamkernel.cli.options import Resources, common, overwrite, seconds_option
from streamkernel.cli.output import Display
from streamkernel.cli.rule_options import RULES_AND_OPTIONS
from streamkernel.errors import ParameterError
from streamkernel.type_aliases import Unchecked


@click.command("submit", cls=GroupedCommand, sections=SECTIONS, epilog=RULES_AND_OPTIONS)
@click.argument("store")
@click.argument("model")
@fit_options
@jobs_option
@seconds_option("--lease", 15.0, "A driver that writes no record for this time is replaced.", least=1.0)
@click.option("--no-check", is_flag=True, help="Do not check STORE and MODEL here; only the cluster sees them.")
@overwrite
@common
def command(
    store: str,
    model: str,
    place: str | None,
    lease: float,
    no_check: bool,
    overwrite: bool,
    display: Display,
    resources: Resources,
    **options: Unchecked,
) -> None:
    """Submit a job that fits a kernel model on STORE and writes it to MODEL; print the job's id.

    The options are those of fit. The job continues after this command has ended. The commands status, logs and cancel
    find it by its id or by MODEL, on any machine that can read its records.
    """
    if not execution_target(resources).remote:
        raise ParameterError(
            "a job outlives this process, and needs a cluster that does: give --scheduler the address of one, such as "
            "tls://host:8786; streamkernel fit runs here"
        )
    refuse_file(store, "a job reads its rows from the workers of the cluster, after this process has ended")
    settings = settings_given(options)
    queries = settings.pop("queries", None)
    with JobPlace(place, resources.scheduler).session() as session:
        job = session.submit(
            options["estimator"],
            store,
            model,
            settings=settings,
            rows=options["rows"],
            weight=options["weight"],
            queries=queries,
            overwrite=overwrite,
            memory_limit=resources.memory,
            lease_seconds=lease,
            check=not no_check,
        )
        result = {"id": job.id, "status": job.status, "jobs": job.jobs, "model": job.model}
    if display.as_json:
        display.emit(result, "job")
        return
    print(job.id)
    display.note(f"streamkernel status {model} --follow shows its progress")
