"""The shared steps of evaluate, predict, transform and report: open a table, check the memory, write values of rows."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from streamkernel.cli.execution import ExecutionTarget, execution_target
from streamkernel.cli.options import Bounds, Resources, cut
from streamkernel.cli.output import Display
from streamkernel.cli.progress import SweepBar
from streamkernel.engine import (
    Executor,
    Machine,
    Plan,
    Session,
    TableShape,
    machine_of,
    make_plan,
    memory_limits,
    step_of,
)
from streamkernel.errors import ParameterError, ResourceLimitError
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.saved import SavedModel
from streamkernel.outputs import PartialFolder
from streamkernel.reductions import RowMap
from streamkernel.reductions.contract import AnyReduction
from streamkernel.store import RowSink, check_target
from streamkernel.table import Table, open_table, with_weights_of
from streamkernel.table.row_outputs import RowOutput, check_group_name, check_values_file, is_values_file
from streamkernel.type_aliases import Unchecked

_MOST_CHUNK_ROWS = 1 << 20


@contextlib.contextmanager
def session_for(
    work: AnyReduction | RowMap, model: SavedModel, table: Table, place: ExecutionTarget, quiet: bool
) -> Iterator[Session]:
    """A session for the work of a model on a table.

    Raises
    ------
    ResourceLimitError
        It would need more memory than `--memory` or the machines' limits; raised before any row is read.
    """
    _check_memory(work, model, table, place)
    with SweepBar(quiet) as bar, place.executor(bar.note) as executor:
        _check_memory(work, model, table, place, executor)
        yield Session(executor, progress=bar)


def _check_memory(
    work: AnyReduction | RowMap,
    model: SavedModel,
    table: Table,
    place: ExecutionTarget,
    executor: Executor | None = None,
) -> None:
    """Check the plan; the workers of a remote cluster are known only from the `executor`."""
    if executor is None:
        machine, limits = place.machine(), place.limits()
    elif place.remote:
        machine = machine_of(executor)
        limits = memory_limits(executor, place.memory)
    else:
        return
    exceeded = limits.exceeded(plan_of_predictions(work, model, table, machine))
    if exceeded:
        raise ResourceLimitError(f"{exceeded}; use fewer --workers or --scheduler threads, or allow more")


def plan_of_predictions(work: AnyReduction | RowMap, model: SavedModel, table: Table, machine: Machine) -> Plan:
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


def opened(model: PredictingModel, store: str, bounds: Bounds, *, targets: bool, weight: str | None = None) -> Table:
    """The rows of a store, scaled for the model; with `targets` also those of a model of them, and row weights."""
    table: Unchecked = cut(with_weights_of(open_table(store, sparse=True), weight), bounds)
    if not targets:
        return model.prepare(table.without_targets().without_weights())
    if model.SUPERVISED and table.n_targets == 0:
        raise ParameterError(f"{store} has no targets to compare predictions with; ingest it with --target")
    return model.prepare(model.prepare_targets(table))


def check_rows_target(out: str, *, overwrite: bool) -> None:
    """Refuse the place of an output of rows, a group or a file, before any work."""
    if is_values_file(out):
        check_values_file(out, overwrite=overwrite)
    else:
        check_group_name(out)
        check_target(out, overwrite=overwrite, kind="rows")


def write_rows(
    out: str,
    model: SavedModel,
    work: RowMap,
    table: Table,
    resources: Resources,
    display: Display,
    *,
    overwrite: bool,
    title: str,
    **attributes: object,
) -> None:
    """Write the values of a row map of a model, for the prepared rows of a table, and print a summary.

    A CSV or Parquet file is written from a group beside it, whose chunks workers write in any order. The group of a
    killed process is removed by the next one that writes the file.

    Parameters
    ----------
    out : output that `check_rows_target` has checked.
    title : what the values are, for the summary.
    attributes : of the group, beside the model's digest and the rows.
    """
    with_model = {"model_digest": model.digest, "rows": [table.start, table.stop], **attributes}
    began = time.perf_counter()
    with ExitStack() as stack:
        group, is_file = out, is_values_file(out)
        if is_file:
            beside = PartialFolder(Path(out).absolute(), None)
            stack.callback(beside.abandon)
            group = str(beside.folder / "rows")
        with session_for(work, model, table, execution_target(resources), display.quiet) as session:
            sink = RowSink.create(
                group,
                table.n_rows,
                work.columns,
                min(table.chunk_rows, _MOST_CHUNK_ROWS),
                attributes=with_model,
                overwrite=overwrite,
            )
            session.write(work, table, sink, title)
        if is_file and (values := RowOutput.open(group)) is not None:
            values.write(out, overwrite=overwrite, table=table)
    seconds = time.perf_counter() - began
    result = {"out": out, "rows": table.n_rows, "arrays": list(work.columns), "seconds": seconds}
    display.emit(result, title)
