"""streamkernel update MODEL STORE"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import click

from streamkernel.cli.column_options import CsvOptions, csv_options, target_of_file, unknown_option
from streamkernel.cli.execution import execution_target
from streamkernel.cli.file_sources import rows_of_update
from streamkernel.cli.options import Bounds, NumberOr, Resources, common, cut, grow_option, run_options, stale_option
from streamkernel.cli.options import rows as rows_option
from streamkernel.cli.options import weight as weight_option
from streamkernel.cli.output import Display, readable
from streamkernel.cli.progress import SweepBar
from streamkernel.cli.saved_objects import updatable_model
from streamkernel.engine import Session, resident_bytes
from streamkernel.following.update_saved import update_saved
from streamkernel.models.updatable import UpdatableModel
from streamkernel.store import Checkpoints
from streamkernel.table import with_weights_of
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.updating.update import Update, known_rows, new_rows


@click.command("update")
@click.argument("model")
@click.argument("store")
@rows_option
@weight_option
@click.option(
    "--alpha",
    type=NumberOr("gcv", "keep"),
    default=None,
    help="The ridge, for ridge models. [default: by gcv if the fit chose it so, else that of the model]",
)
@click.option(
    "--variances",
    type=click.Choice(["keep", "evidence"]),
    default=None,
    help="The variances, for gp and committee: keep them, or take those of the largest evidence. [default: chosen as "
    "in the fit]",
)
@stale_option
@grow_option
@click.option("--as-new", is_flag=True, help="Treat a store with changed rows as another store.")
@target_of_file
@unknown_option
@csv_options
@run_options
@common
def command(
    model: str,
    store: str,
    rows: Bounds,
    weight: str | None,
    alpha: Unchecked,
    variances: str | None,
    stale: float,
    grow: int,
    as_new: bool,
    target: tuple[str, ...],
    unknown: str | None,
    csv: CsvOptions,
    resources: Resources,
    display: Display,
) -> None:
    """Fold the rows of STORE that MODEL has not seen yet into MODEL.

    Rows are recognised by their content, not by the path: a repeated update folds in nothing, and an update from a
    store that has grown folds in only the new rows. The model is then that of a fit to all rows with the same basis.

    STORE may be a CSV, Parquet or Arrow file with the columns and the target of MODEL, in any order.
    """
    place = execution_target(resources)
    before = updatable_model(model)
    with ExitStack() as stack:
        given = rows_of_update(
            before, store, resources, display, target=target, weight=weight, as_new=as_new, unknown=unknown, csv=csv
        )
        found, left = stack.enter_context(given)
        opened = new_rows(before, found) if left is None else with_weights_of(known_rows(before, found), left)
        table = cut(opened, rows)
        bar = stack.enter_context(SweepBar(display.quiet))

        def session(checkpoints: Checkpoints) -> Session:
            # The executor starts only if there is work: no cluster is needed to find that all rows were seen.
            executor = stack.enter_context(place.executor(bar.note))
            began.append(time.perf_counter())
            return Session(executor, progress=bar, checkpoints=checkpoints)

        began = [time.perf_counter()]
        done = update_saved(
            model,
            updatable_model,
            table,
            session,
            choices={"alpha": alpha, "variances": variances},
            stale=stale,
            grow=grow,
            as_new=as_new,
            memory_limit=place.memory,
            driver_bytes=None if place.workers else resident_bytes(),
        )
        seconds = time.perf_counter() - began[-1]
    _print(done, model, store, seconds, display)


def _solution(model: UpdatableModel) -> Fields:
    return {"basis_size": model.record.basis_size, **model.record.certificate.to_config(), **model.solution_fields()}


def _print(done: Update[Any], model: str, store: str, seconds: float, display: Display) -> None:
    result = {
        "model": model,
        "store": store,
        "rows_folded": done.rows_folded,
        "rows_seen_before": done.rows_seen_before,
        "rows": done.rows,
        "residual_of_fit": done.staleness.of_fit,
        "residual_of_new": done.staleness.of_new,
        "stale": done.stale,
        "grown": done.grown,
        **_solution(done.model),
        "sweeps": done.sweeps,
        "resumed_sweeps": done.resumed_sweeps,
        "seconds": seconds,
        "digest": done.model.digest,
    }
    title = "updated" if done.changed else "nothing to update: all rows were seen before"
    display.emit(result, title, readable(result))
