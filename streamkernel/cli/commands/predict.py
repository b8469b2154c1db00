"""streamkernel predict MODEL STORE OUT"""

from __future__ import annotations

import time

import click

from streamkernel.cli.execution import execution_target
from streamkernel.cli.options import Bounds, Resources, common, overwrite, rows, run_options
from streamkernel.cli.output import Display
from streamkernel.cli.saved_objects import predicting_model
from streamkernel.cli.tables_for_models import opened, session_for
from streamkernel.store import RowSink, check_target

_MOST_CHUNK_ROWS = 1 << 20


@click.command("predict")
@click.argument("model")
@click.argument("store")
@click.argument("out")
@rows
@click.option("--std", is_flag=True, help="Write standard deviations too, if the model has them.")
@run_options
@overwrite
@common
def command(
    model: str,
    store: str,
    out: str,
    rows: Bounds,
    std: bool,
    resources: Resources,
    overwrite: bool,
    display: Display,
) -> None:
    """Write MODEL's predictions for the rows of STORE to the Zarr group OUT, chunk by chunk.

    OUT/prediction has one value for each row. For classifiers it is the position of the class in the labels, which are
    in the group's attributes.
    """
    check_target(out, overwrite=overwrite, kind="rows")
    place = execution_target(resources)
    fitted = predicting_model(model)
    work = fitted.outputs(std=std)
    table = opened(fitted, store, rows, targets=False)
    attributes = {
        "model_digest": fitted.digest,
        "rows": [table.start, table.stop],
        "classes": None if fitted.record.classes is None else list(fitted.record.classes),
        "target_names": list(fitted.record.target_names),
    }
    began = time.perf_counter()
    with session_for(work, fitted, table, place, display.quiet) as session:
        sink = RowSink.create(
            out,
            table.n_rows,
            work.columns,
            min(table.chunk_rows, _MOST_CHUNK_ROWS),
            attributes=attributes,
            overwrite=overwrite,
        )
        session.write(work, table, sink, "predict")
    seconds = time.perf_counter() - began
    result = {"out": out, "rows": table.n_rows, "arrays": list(work.columns), "seconds": seconds}
    display.emit(result, "predictions")
