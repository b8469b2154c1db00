"""streamkernel report MODEL ... OUT.html; streamkernel report FACTOR ... OUT.html"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click
import numpy as np

from streamkernel.blobs import blobs_at, parent_of
from streamkernel.cli.column_options import target_of_file
from streamkernel.cli.file_sources import rows_of_model
from streamkernel.cli.options import Bounds, Resources, Scheduler, common, cut, overwrite, rows, weight
from streamkernel.cli.output import Display
from streamkernel.cli.saved_objects import is_factor, kind_of, predicting_model
from streamkernel.cli.tables_for_models import opened
from streamkernel.errors import ParameterError, StreamKernelError
from streamkernel.factors import Factor
from streamkernel.kinds import transformer_class
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.saved import SavedModel
from streamkernel.models.transformers import TransformerModel
from streamkernel.report import (
    draw_factor_png,
    draw_png,
    pca_optimum,
    write_factor_report,
    write_models_report,
    write_report,
)
from streamkernel.report.pages import has_page
from streamkernel.report.publish import PICTURE, checked_output
from streamkernel.table import Table, open_table, with_weights_of
from streamkernel.table.synthetic import is_synthetic, normal_form
from streamkernel.type_aliases import Fields
from streamkernel.wording import switch

_MOST_ROWS = 5000
# Where a file for --data is read.
_HERE = Resources(Scheduler("threads"))


@click.command("report")
@click.argument("sources", nargs=-1, required=True, metavar="MODEL|FACTOR...")
@click.argument("out")
@click.option(
    "--data",
    default=None,
    metavar="STORE|FILE",
    help="Compare predicted with true targets on these rows; of one class, draw their values; of kernel PCA and CCA, "
    "their components or variates and the correlations there. For factors, their table, for the optimum by PCA.",
)
@rows
@weight
@target_of_file
@click.option("--png", default=None, metavar="PATH", help="Write a small picture, too.")
@overwrite
@common
def command(
    sources: tuple[str, ...],
    out: str,
    data: str | None,
    rows: Bounds,
    weight: str | None,
    target: tuple[str, ...],
    png: str | None,
    overwrite: bool,
    display: Display,
) -> None:
    """Draw a MODEL, or MODELs or FACTORs side by side, as one self-contained HTML page."""
    factors = [is_factor(source) for source in sources]
    if any(factors) and not all(factors):
        other = sources[factors.index(False)]
        raise ParameterError(f"{other} is not a factor: a page is about models, or about factors; make a page for each")
    if rows is not None and data is None:
        raise ParameterError("--rows says which rows of --data are drawn; give --data, or leave it out")
    if weight is not None and data is None:
        raise ParameterError("--weight says what the row weights of --data are; give --data, or leave it out")
    if target and (data is None or len(sources) > 1 or factors[0]):
        raise ParameterError("--target names targets of --data, for a page of one model; leave it out")
    checked_output(out, overwrite=overwrite)
    if png is not None:
        checked_output(png, overwrite=True, mark=PICTURE)
    if len(sources) > 1 and not factors[0]:
        _models(sources, out, data, png, overwrite)
    elif factors[0]:
        _factors(sources, out, data, rows, weight, png, overwrite)
    else:
        _model(sources[0], out, data, rows, weight, target, png, overwrite, display)
    around, name = parent_of(out)
    result = {"report": out, "bytes": blobs_at(around).size(name)}
    display.emit(result if png is None else {**result, "png": png}, "report")


def _model(
    source: str,
    out: str,
    data: str | None,
    rows: Bounds,
    weight: str | None,
    target: tuple[str, ...],
    png: str | None,
    overwrite: bool,
    display: Display,
) -> None:
    transformer = transformer_class(kind_of(source))
    if transformer is not None and has_page(transformer):
        option = "--png" if png is not None else "--weight" if weight is not None else "--target"
        if png is not None or weight is not None or target:
            raise ParameterError(f"{option} is of models that predict, and {source} does not; leave it out")
        found = transformer.load(source)
        write_report(
            found, out, overwrite=overwrite, pairs=None if data is None else _projected(found, data, rows, display)
        )
        return
    fitted = predicting_model(source)
    pairs = None if data is None else _predicted(fitted, data, rows, weight, target, display)
    write_report(fitted, out, overwrite=overwrite, pairs=pairs)
    if png is not None:
        with _beside_page(out):
            draw_png(fitted, png)


@contextmanager
def _beside_page(out: str) -> Iterator[None]:
    """Say in an error of the picture, such as a full disk, that the page is there, and how to go on."""
    try:
        yield
    except StreamKernelError as error:
        raise type(error)(
            f"{error.message} (the page {out} is written, and the picture is not: give {switch('overwrite')} to "
            "write both)"
        ) from error


def _predicted(
    model: PredictingModel, data: str, rows: Bounds, weight: str | None, target: tuple[str, ...], display: Display
) -> Fields:
    """The first rows of a store or a file with their targets and predictions."""
    with rows_of_model(model, data, _HERE, display, targets=True, target=target, weight=weight) as (found, left):
        table = opened(model, found, rows, targets=True, weight=left)
        block = table.read(table.start, min(table.stop, table.start + _MOST_ROWS))
    # Rows of weight 0 are no rows.
    w = block.row_weights
    kept = np.flatnonzero(w > 0.0) if w.any() else np.arange(len(w))
    return {
        "kind": f"rows {block.start}:{block.start + len(block.X)} of {_name_of(data)}",
        **({} if block.Y is None else {"true": block.Y[kept]}),
        **({} if block.weights is None else {"weight": w[kept]}),
        **model.checking().check_values(np.ascontiguousarray(block.X[kept])),
    }


def _projected(model: TransformerModel, data: str, rows: Bounds, display: Display) -> Fields:
    """The first rows of a store or a file with their components or variates, and their labels or targets."""
    with rows_of_model(model, data, _HERE, display, targets=True) as (found, _):
        return _components(model, data, cut(open_table(found, sparse=True), rows))


def _components(model: TransformerModel, data: str, table: Table) -> Fields:
    start, stop = table.start, min(table.stop, table.start + _MOST_ROWS)
    work, prepared = model.outputs(table)
    found = {"kind": f"rows {start}:{stop} of {_name_of(data)}", **work.map_block(prepared.read(start, stop))}
    if "variates" in found and "variates_y" not in found:
        raise ParameterError(
            f"{data} has no second view: give a table whose targets are that view, or leave --data out"
        )
    Y = None if table.targets is None else table.read(start, stop).Y
    if Y is None:
        return found
    if table.classes is not None:
        return {**found, "label": np.asarray(table.classes)[Y.argmax(axis=1)]}
    return {**found, "target": Y[:, 0], "target_name": table.target_names[0]}


def _name_of(data: str) -> str:
    return normal_form(data) if is_synthetic(data) else parent_of(data)[1]


def _models(sources: tuple[str, ...], out: str, data: str | None, png: str | None, overwrite: bool) -> None:
    """Models side by side, on the held-out rows that they keep."""
    if data is not None or png is not None:
        option = "--data" if data is not None else "--png"
        raise ParameterError(f"{option} is of one model, and there are {len(sources)}; leave it out, or name one model")
    twice = next((source for source in sources if sources.count(source) > 1), None)
    if twice is not None:
        raise ParameterError(f"{twice} was named twice; name each model once")
    last = [parent_of(source)[1] for source in sources]
    # The names of folders do, unless two are equal.
    names = last if len(set(last)) == len(last) else list(sources)
    models: dict[str, SavedModel] = {}
    for name, source in zip(names, sources, strict=True):
        transformer = transformer_class(kind_of(source))
        models[name] = predicting_model(source) if transformer is None else transformer.load(source)
    write_models_report(models, out, overwrite=overwrite)


def _factors(
    sources: tuple[str, ...],
    out: str,
    data: str | None,
    rows: Bounds,
    weight: str | None,
    png: str | None,
    overwrite: bool,
) -> None:
    factors = [Factor.load(source) for source in sources]
    optimum = None
    if data is not None:
        made_from = factors[0].record.rows
        table = cut(
            with_weights_of(open_table(data, sparse=True), weight),
            (made_from.start, made_from.stop) if rows is None else rows,
        )
        optimum = pca_optimum(factors, table.without_targets())
    write_factor_report(factors, out, overwrite=overwrite, optimum=optimum)
    if png is not None:
        with _beside_page(out):
            draw_factor_png(factors, png, optimum=optimum)
