"""streamkernel warm-up"""

from __future__ import annotations

import time

import click

from streamkernel.cli.execution import execution_target
from streamkernel.cli.grouped_help import MACHINE, section_option
from streamkernel.cli.options import Resources, Scheduler, common, tls_options
from streamkernel.cli.output import Display
from streamkernel.engine.compiling import LOOPS, compile_ahead
from streamkernel.report.text import plural


@click.command("warm-up")
@section_option(
    MACHINE,
    "--scheduler",
    "address",
    default=None,
    metavar="ADDRESS",
    help="Compile on all workers of the scheduler at this tls:// or tcp:// address too. [default: only here]",
)
@tls_options
@common
def command(scheduler: Scheduler, display: Display) -> None:
    """Compile the kernels for this machine's processor, once after an installation.

    Without it the first fit does so, and waits. The compiled code is in Numba's cache (NUMBA_CACHE_DIR), for all later
    processes on machines with the same processor that see this folder. In a batch job run it before the workers start.
    """
    target = None if scheduler.address is None else execution_target(Resources(scheduler))
    began = time.perf_counter()
    before = LOOPS.are_compiled()
    folder = compile_ahead(display.note)
    workers = 0
    if target is not None:
        # Workers compile while they are prepared for their first task.
        with target.executor(display.note) as executor:
            workers = executor.n_workers
    result = {"cache": folder, "compiled": not before, "workers": workers, "seconds": time.perf_counter() - began}
    title = "the kernels were compiled before, nothing was to do" if before else "compiled the kernels for this machine"
    if workers:
        title += f"; {plural(workers, 'worker')} loaded them"
    # Threads are those of this process, which lasts no longer: there are no workers to count.
    display.emit(result, title, {name: result[name] for name in ("cache", "seconds")})
