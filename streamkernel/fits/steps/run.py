"""The run of a fit: its plan, checked before anything is read, and the frame around its steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streamkernel.byte_counts import format_bytes
from streamkernel.engine import Machine, PeakMeter, Plan, Session, check_memory, machine_of, memory_limits, tell_plan
from streamkernel.errors import warn_user
from streamkernel.fits.steps.record import run_record
from streamkernel.linalg import single_threaded_blas, within_range
from streamkernel.records import Run
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Table
from streamkernel.wording import option


def size_of_fit(settings: BasisSettings, table: Table) -> int:
    """The basis size of a fit; a warning where there are fewer rows than functions were asked for.

    Raises
    ------
    ParameterError
        As of `BasisSettings.components`.
    """
    n = settings.components(table)
    if settings.asks_beyond(table):
        warn_of_fewer_rows(settings.size_name, settings.n_components, table)
    return n


def warn_of_fewer_rows(name: str, asked: int | None, table: Table) -> None:
    """Warn that the basis has as many functions as rows at most; `asked` are wanted, by the parameter of that name."""
    if asked is not None and asked > table.counted:
        rows = f"{table.counted} rows" + ("" if table.counted == table.n_rows else " of weight > 0")
        warn_user(f"{option(name)} is {asked}, more than the {rows}; the fit goes on with {table.counted}")


def checked_plan(
    plan_of: Callable[[Machine, int], Plan],
    n: int,
    table: Table,
    session: Session,
    memory_limit: int | None,
    driver_bytes: int | None,
    plan: Plan | None = None,
) -> Plan:
    """Return the plan of a run, after a check that it stays within the limits.

    Parameters
    ----------
    plan_of : function that plans for a machine and a basis size.
    memory_limit : bytes of all processes together; None for what the machines have (`memory_limits`).
    driver_bytes : bytes resident in the driver before the run.
    plan : plan for the session's machine that the caller has made and checked; no other is made.

    Raises
    ------
    DataError
        Row weights that are no weights, or all 0.
    ResourceLimitError
        The plan exceeds a limit.
    """
    table.check_weights()
    if plan is None:
        machine = machine_of(session.executor, driver_bytes)
        plan = plan_of(machine, n)
        check_memory(plan, memory_limits(session.executor, memory_limit), lambda size: plan_of(machine, size), n)
    tell_plan(session.progress, plan)
    session.progress.note(
        f"{plan.sweeps} sweeps over {table.n_rows:,} rows, {format_bytes(plan.memory_bytes)} of memory at most"
    )
    return plan


@contextmanager
def measured(session: Session, plan: Plan) -> Iterator[Callable[[], Run]]:
    """The frame around the steps of a run: one BLAS thread, no silent overflow, seconds and peak memory.

    Yields
    ------
    function
        Returns the record of the run; call it after the block.
    """
    began = time.perf_counter()
    # One BLAS thread on the driver too: equal bits on any number of cores.
    with single_threaded_blas(), within_range(), PeakMeter() as meter:
        yield lambda: run_record(session, plan, time.perf_counter() - began, meter.peak + session.executor.peak_bytes())
