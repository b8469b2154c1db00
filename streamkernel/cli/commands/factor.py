"""streamkernel factor STORE FACTOR"""

from __future__ import annotations

import time
from functools import partial

import click

from streamkernel.cli.checkpoints import resumable_session
from streamkernel.cli.fit_options import FACTOR_DEFAULTS, SECTIONS, factor_options
from streamkernel.cli.fit_request import fit_request, settings_given
from streamkernel.cli.grouped_help import GroupedCommand
from streamkernel.cli.options import Resources, common, overwrite
from streamkernel.cli.output import Display, readable
from streamkernel.cli.rule_options import RULES_AND_OPTIONS
from streamkernel.engine import resident_bytes
from streamkernel.factors import Factor, checked_folder
from streamkernel.fits.factor.factor import COLUMNS, make_factor, plan_of_factor
from streamkernel.fits.factor.factor_stop import STOPS
from streamkernel.settings.basis import BasisSettings
from streamkernel.type_aliases import Unchecked


@click.command("factor", cls=GroupedCommand, sections=SECTIONS, epilog=RULES_AND_OPTIONS)
@click.argument("store")
@click.argument("factor")
@factor_options
@click.option(
    "--columns",
    type=click.Choice(COLUMNS),
    default="G",
    show_default=True,
    help="Whether the factor has the columns G, or only their basis (none).",
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float64"]),
    default="float32",
    show_default=True,
    help="The dtype of G on disk.",
)
@click.option(
    "--stop",
    type=click.Choice(STOPS),
    default="trace",
    show_default=True,
    help="Which picks are kept: all up to --tol (trace), those up to the smallest compression bound (bound), or those "
    "up to a small dual gap (gap).",
)
@click.option("--resume", is_flag=True, help="Continue with what an interrupted run has finished.")
@overwrite
@common
def command(
    store: str,
    factor: str,
    columns: str,
    dtype: str,
    stop: str,
    resume: bool,
    overwrite: bool,
    resources: Resources,
    display: Display,
    **options: Unchecked,
) -> None:
    """Write G with G G^T ~ K, for the kernel matrix K of the table STORE, to FACTOR.

    FACTOR/rows/G is a Zarr array with a row for each row of the table; FACTOR/basis holds which rows were picked, in
    which order, and the residual trace after each.
    """
    target = checked_folder(factor, overwrite=overwrite, resume=resume)
    given = {name: value for name, value in settings_given(options).items() if value is not None}
    settings = BasisSettings(**{**FACTOR_DEFAULTS, **given})
    plan_of = partial(plan_of_factor, columns=columns, dtype=dtype, stop=stop)
    request = fit_request(store, options, resources, settings, plan_of, driver_bytes=resident_bytes())
    with resumable_session(request, target, resume, display) as session:
        began = time.perf_counter()
        made = make_factor(
            request.table,
            request.settings,
            session,
            target,
            dtype=dtype,
            columns=columns,
            stop=stop,
            memory_limit=request.place.memory,
            plan=request.plan_of_run,
            overwrite=overwrite,
            resume=resume,
        )
        seconds = time.perf_counter() - began
    _print(made, factor, seconds, display)


def _print(factor: Factor, path: str, seconds: float, display: Display) -> None:
    record = factor.record
    run = record.run
    assert run is not None
    result = {
        "factor": path,
        "rows": record.rows.count,
        "basis_size": record.basis_size,
        "rule": record.rule,
        "ended": record.ended,
        "sweeps": len(run.sweeps),
        **record.certificate.to_config(),
        "lengthscale": factor.lengthscale,
        "metric": factor.metric_fields,
        "columns": None if record.columns is None else record.columns.dtype,
        "seconds": seconds,
        "peak_memory_bytes": run.peak_memory_bytes,
        "planned_memory_bytes": run.planned_memory_bytes,
        "resumed_sweeps": sum(sweep.resumed for sweep in run.sweeps),
        "digest": factor.digest,
    }
    display.emit(result, "factor", readable(result))
