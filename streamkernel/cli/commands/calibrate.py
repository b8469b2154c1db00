"""streamkernel calibrate"""

from __future__ import annotations

import click

from streamkernel.byte_counts import format_bytes
from streamkernel.cli.execution import execution_target
from streamkernel.cli.grouped_help import GroupedCommand
from streamkernel.cli.options import Resources, common, run_options
from streamkernel.cli.output import Display
from streamkernel.timing import write_rates
from streamkernel.timing.calibrate import calibrate
from streamkernel.timing.rates import check_writable


@click.command("calibrate", cls=GroupedCommand)
@click.option(
    "--store",
    default=None,
    metavar="STORE",
    help="A table to read, which all workers see: its storage is measured. [default: a file in the temporary folder]",
)
@click.option(
    "--rates",
    default=None,
    metavar="FILE",
    help="The file to write. [default: STREAMKERNEL_RATES, else rates.json in the user's cache folder]",
)
@run_options
@common
def command(store: str | None, rates: str | None, resources: Resources, display: Display) -> None:
    """Measure the rates by which plans compute times, on this machine or on a cluster. It takes up to a minute."""
    check_writable(rates)
    with execution_target(resources).executor(display.note) as executor:
        found = calibrate(executor, store, display.note)
    place = write_rates(found, rates)
    result = {"rates_file": str(place), **found.to_config()}
    fastest = max(found.sums, key=lambda rate: rate.flops)
    shown = {
        "rates": str(place),
        "cores": found.cores,
        "slower when all are busy": f"{found.busy:.3g}",
        "kernel entry, gaussian, 10 features": f"{1e9 * found.entry_seconds('gaussian', 'float32', 10):.3g} ns",
        "operations a second of a core": f"{fastest.flops:.3g}",
        "read and decoded a second": format_bytes(found.read_bytes),
        "storage, all workers, a second": "no limit met" if found.storage_bytes is None
        else format_bytes(found.storage_bytes),
        "network a second": format_bytes(found.network_bytes),
        "task on the scheduler": f"{1e3 * found.task_seconds:.3g} ms",
    }  # fmt: skip
    display.emit(result, "rates", shown)
