"""The shared steps of evaluate, predict and report: open a table for a model, and check the memory."""

from __future__ import annotations

from streamkernel.cli.execution import ExecutionTarget
from streamkernel.cli.options import cut
from streamkernel.engine import (
    Executor,
    Machine,
    Plan,
    TableShape,
    machine_of,
    make_plan,
    memory_limits,
    step_of,
)
from streamkernel.engine.limits import parse_bytes
from streamkernel.errors import ParameterError, ResourceLimitError
from streamkernel.models.predicting import PredictingModel
from streamkernel.reductions import RowMap
from streamkernel.reductions.contract import AnyReduction
from streamkernel.table import Table, open_table
from streamkernel.type_aliases import Unchecked


def check_memory(
    work: AnyReduction | RowMap,
    model: PredictingModel,
    table: Table,
    place: ExecutionTarget,
    memory: str | None,
    executor: Executor | None = None,
) -> None:
    """Raise, before anything is read, where the work would need more than `--memory` or the machines' limits.

    Parameters
    ----------
    work : of the model, on the table.
    executor : once it is there; only then are the workers of a remote cluster known.

    Raises
    ------
    ResourceLimitError
    """
    asked = parse_bytes(memory)
    if executor is None:
        machine, limits = place.machine(), place.limits(asked)
    elif place.remote:
        machine = machine_of(executor)
        limits = memory_limits(executor, asked)
    else:
        return
    exceeded = limits.exceeded(plan_of_predictions(work, model, table, machine))
    if exceeded:
        raise ResourceLimitError(f"{exceeded}; use fewer --workers or --scheduler threads, or allow more")


def plan_of_predictions(work: AnyReduction | RowMap, model: PredictingModel, table: Table, machine: Machine) -> Plan:
    """What a sweep of a model over a table costs: every process has the basis, packed, and all else of the model."""
    basis, arrays = model.basis, sum(array.nbytes for array in model.arrays.values())
    n = len(basis)
    step = step_of(
        "sweep",
        work,
        table,
        kernel_columns=n,
        # What the work has of the arrays, and what whitens kernel values for standard deviations.
        packed_bytes=arrays + 24 * n**2,
        rows_bytes=arrays,  # as they were read
    )
    return make_plan([step], TableShape.of(table), machine, disk_bytes=0, kernel=basis.kernel)


def opened(model: PredictingModel, store: str, bounds: tuple[int | None, int | None] | None, *, targets: bool) -> Table:
    """The rows of a store, scaled for the model; with `targets` also y, in the model's classes."""
    table: Unchecked = cut(open_table(store), bounds)
    if not targets:
        return model.prepare(table.without_targets())
    if table.n_targets == 0:
        raise ParameterError(f"{store} has no targets to compare predictions with; ingest it with --target")
    return model.prepare(model.prepare_targets(table))
