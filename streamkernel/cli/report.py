"""streamkernel report MODEL OUT.html"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from streamkernel.cli.options import common, overwrite, rows
from streamkernel.cli.output import emit
from streamkernel.cli.scoring import opened
from streamkernel.estimators import RidgeModel
from streamkernel.report import write_report

__all__ = ["command"]

_MOST_ROWS = 5000


@click.command("report")
@click.argument("model")
@click.argument("out")
@click.option("--data", default=None, metavar="STORE", help="Draw predicted against true on these rows instead.")
@rows
@overwrite
@common
def command(
    model: str,
    out: str,
    data: str | None,
    rows: tuple[int | None, int | None] | None,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    debug: bool,
) -> None:
    """Draw MODEL as one self-contained HTML page."""
    fitted = RidgeModel.load(model)
    pairs = None
    if data is not None:
        table = opened(fitted, data, rows, targets=True)
        block = table.read(table.start, min(table.stop, table.start + _MOST_ROWS))
        assert block.Y is not None
        pairs = {
            "kind": f"rows {block.start}:{block.start + len(block.X)} of {Path(data).name}",
            "true": np.asarray(block.Y),
            "predicted": fitted.predictions().values(block.X),
        }
    write_report(fitted, out, overwrite=overwrite, pairs=pairs)
    emit({"report": out, "bytes": Path(out).stat().st_size}, as_json=as_json, title="report")
