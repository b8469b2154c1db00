"""streamkernel transform MODEL STORE OUT"""

from __future__ import annotations

import click

from streamkernel.cli.column_options import CsvOptions, csv_options, unknown_option
from streamkernel.cli.file_sources import rows_of_model
from streamkernel.cli.options import Bounds, Resources, common, cut, overwrite, rows, run_options
from streamkernel.cli.output import Display
from streamkernel.cli.saved_objects import transformer_model
from streamkernel.cli.tables_for_models import check_rows_target, write_rows
from streamkernel.table import open_table


@click.command("transform")
@click.argument("model")
@click.argument("store")
@click.argument("out")
@rows
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
    unknown: str | None,
    csv: CsvOptions,
    resources: Resources,
    overwrite: bool,
    display: Display,
) -> None:
    """Transform the rows of STORE with MODEL, and write the values to the Zarr group OUT, chunk by chunk.

    STORE may be a CSV, Parquet or Arrow file with the columns of MODEL, in any order; others are left out.

    Where OUT ends in .csv or .parquet it is such a file, with the number of each row.

    OUT/features has the whitened features of a Nystroem transformer, OUT/scores the components of a kernel PCA.
    OUT/variates has the canonical variates of a kernel CCA, and OUT/variates_y those of the second view, where STORE
    has it.
    """
    check_rows_target(out, overwrite=overwrite)
    fitted = transformer_model(model)
    with rows_of_model(fitted, store, resources, display, targets=False, unknown=unknown, csv=csv) as (found, _):
        work, table = fitted.outputs(cut(open_table(found, sparse=True), rows))
        write_rows(out, fitted, work, table, resources, display, overwrite=overwrite, title="rows")
