"""streamkernel predict MODEL STORE OUT"""

from __future__ import annotations

import click

from streamkernel.cli.column_options import CsvOptions, csv_options, target_of_file, unknown_option
from streamkernel.cli.file_sources import rows_of_model
from streamkernel.cli.options import Bounds, Resources, common, overwrite, rows, run_options
from streamkernel.cli.output import Display
from streamkernel.cli.saved_objects import predicting_model
from streamkernel.cli.tables_for_models import check_rows_target, opened, write_rows


@click.command("predict")
@click.argument("model")
@click.argument("store")
@click.argument("out")
@rows
@click.option("--std", is_flag=True, help="Write standard deviations too, if the model has them.")
@click.option(
    "--interval",
    type=float,
    default=None,
    metavar="LEVEL",
    help="Write the bounds of an interval that holds the target with this probability, such as .95, if the model has "
    "them.",
)
@target_of_file
@unknown_option
@csv_options
@run_options
@overwrite
@common
def command(
    model: str,
    store: str,
    out: str,
    rows: Bounds,
    std: bool,
    interval: float | None,
    target: tuple[str, ...],
    unknown: str | None,
    csv: CsvOptions,
    resources: Resources,
    overwrite: bool,
    display: Display,
) -> None:
    """Write MODEL's predictions for the rows of STORE to the Zarr group OUT, chunk by chunk.

    OUT/prediction has one value for each row. For classifiers it is the position of the class in the labels, which are
    in the group's attributes.

    STORE may be a CSV, Parquet or Arrow file with the columns of MODEL, in any order; others are left out. Where
    MODEL was fitted to columns without names, all columns are features, but for the one that --target names.

    Where OUT ends in .csv or .parquet it is such a file, with the number of each row and the labels of classes.
    """
    check_rows_target(out, overwrite=overwrite)
    fitted = predicting_model(model)
    work = fitted.outputs(std=std) if interval is None else fitted.intervals(interval, std=std)
    attributes = {
        "classes": None if fitted.record.classes is None else list(fitted.record.classes),
        "target_names": list(fitted.record.target_names),
        "column_names": {name: fitted.output_labels(width) for name, (width, _) in work.columns.items() if width},
    }
    source = rows_of_model(fitted, store, resources, display, targets=False, target=target, unknown=unknown, csv=csv)
    with source as (found, _):
        table = opened(fitted, found, rows, targets=False)
        write_rows(out, fitted, work, table, resources, display, overwrite=overwrite, title="predictions", **attributes)
