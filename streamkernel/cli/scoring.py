"""The shared steps of evaluate, predict and report: open a table for a model, and check the memory."""

from __future__ import annotations

from typing import Any

from streamkernel.cli.machine import Place
from streamkernel.cli.options import cut
from streamkernel.engine import Executor, TableShape, machine_of, make_plan, memory_limits, step_of
from streamkernel.errors import ParameterError, ResourceLimitError
from streamkernel.estimators.base import parse_bytes
from streamkernel.estimators.kept_model import PredictingModel
from streamkernel.reductions import Reduction, RowMap
from streamkernel.table import Table, open_table

__all__ = ["check_memory", "opened"]


def check_memory(
    work: Reduction[Any] | RowMap, table: Table, place: Place, memory: str | None, executor: Executor | None = None
) -> None:
    """Raise, before anything is read, where the work would need more than `--memory` or the machines' limits.

    Parameters
    ----------
    executor : started executor, or None before the start; the workers of a remote cluster are known only with it.

    Raises
    ------
    ResourceLimitError
    """
    asked = parse_bytes(memory, "--memory")
    if executor is None:
        machine, limits = place.machine(), place.limits(asked)
    elif place.remote:
        machine = machine_of(executor)
        limits = memory_limits(executor, asked)
    else:
        return
    step = step_of("sweep", work, table, kernel_columns=0)
    exceeded = limits.exceeded(make_plan([step], TableShape.of(table), machine, disk_bytes=0))
    if exceeded:
        raise ResourceLimitError(f"{exceeded}; use fewer --workers or --scheduler threads, or allow more")


def opened(model: PredictingModel, store: str, bounds: tuple[int | None, int | None] | None, *, targets: bool) -> Table:
    """The rows of a store, scaled for the model; with `targets` also y, in the model's classes."""
    table: Any = cut(open_table(store), bounds)
    if not targets:
        return model.prepare(table.without_targets())
    if table.n_targets == 0:
        raise ParameterError(f"{store} has no targets to compare predictions with; ingest it with --target")
    return model.prepare(model.prepare_targets(table))
