"""streamkernel compress STORE OUT"""

from __future__ import annotations

import time

import click

from streamkernel.cli.checkpoints import resumable_session
from streamkernel.cli.fit_options import COMPRESSION_SECTIONS, compression_options
from streamkernel.cli.fit_request import fit_request, settings_given
from streamkernel.cli.grouped_help import GroupedCommand
from streamkernel.cli.options import Resources, common, overwrite
from streamkernel.cli.output import Display, readable
from streamkernel.cli.rule_options import RULES_AND_OPTIONS
from streamkernel.compression import CompressedTable
from streamkernel.engine import resident_bytes
from streamkernel.fits.compression.compress import check_not_source, make_compressed, weight_column_of, write_compressed
from streamkernel.fits.compression.compression_plan import plan_of_compression
from streamkernel.outputs import check_target
from streamkernel.settings.compression import CompressionSettings
from streamkernel.table import TableInfo
from streamkernel.type_aliases import Unchecked


@click.command("compress", cls=GroupedCommand, sections=COMPRESSION_SECTIONS, epilog=RULES_AND_OPTIONS)
@click.argument("store")
@click.argument("out")
@compression_options
@click.option("--classify", is_flag=True, help="Targets that are numbers are labels of classes.")
@click.option("--resume", is_flag=True, help="Continue with what an interrupted run has finished.")
@overwrite
@common
def command(
    store: str,
    out: str,
    classify: bool,
    resume: bool,
    overwrite: bool,
    resources: Resources,
    display: Display,
    **options: Unchecked,
) -> None:
    """Write a small weighted table to OUT that stands for the rows of the table STORE, for any estimator."""
    target = check_target(out, overwrite=overwrite, kind="table")
    check_not_source(store, out)
    given = {name: value for name, value in settings_given(options).items() if value is not None}
    settings = CompressionSettings(**given)
    request = fit_request(
        store, options, resources, settings, plan_of_compression, classify=classify, driver_bytes=resident_bytes()
    )
    with resumable_session(request, target, resume, display) as session:
        began = time.perf_counter()
        found = make_compressed(
            request.table,
            request.settings,
            session,
            weight_column=weight_column_of(request.whole, store),
            memory_limit=request.place.memory,
            plan=request.plan_of_run,
        )
        info = write_compressed(found, target, overwrite=overwrite)
        seconds = time.perf_counter() - began
    _print(found, info, out, seconds, request.table.n_rows, display)


def _print(found: CompressedTable, info: TableInfo, path: str, seconds: float, rows: int, display: Display) -> None:
    run = found.run
    result = {
        "table": path,
        "method": found.method,
        "rows": rows,
        "size": len(found),
        "weight": float(found.weights.sum()),
        "largest_weight": float(found.weights.max()),
        "weight_column": info.weight,
        "lengthscale": found.lengthscale,
        "sweeps": len(run.sweeps),
        "seconds": seconds,
        "peak_memory_bytes": run.peak_memory_bytes,
        "planned_memory_bytes": run.planned_memory_bytes,
        "resumed_sweeps": sum(sweep.resumed for sweep in run.sweeps),
        "fingerprint": info.fingerprint,
    }
    display.emit(result, "compressed table", readable(result))
