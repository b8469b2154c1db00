"""streamkernel info STORE|MODEL|FACTOR|PREDICTIONS"""

from __future__ import annotations

import click
import numpy as np

from streamkernel.cli.options import common
from streamkernel.cli.output import Display, readable
from streamkernel.cli.saved_objects import kind_of, predicting_model
from streamkernel.factors import Factor, SavedBasis
from streamkernel.kinds import transformer_class
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.transformers import TransformerModel
from streamkernel.records import ModelRecord, UpdatableRecord
from streamkernel.report.text import count, kernel_of, percent
from streamkernel.table.info import table_info
from streamkernel.table.row_outputs import RowOutput, values_file_info
from streamkernel.table.values import listed
from streamkernel.type_aliases import Fields


@click.command("info")
@click.argument("path")
@common
def command(path: str, display: Display) -> None:
    """Show what the table, model, transformer, factor or output of rows (predictions; also as a file) at PATH holds."""
    if file := values_file_info(path):
        display.emit(file, "rows", {**file, "columns": listed(file["columns"], 20)})
        return
    kind = kind_of(path)
    output = RowOutput.open(path) if kind is None else None
    if output is not None and "model_digest" in output.attributes:
        display.emit(output.info(), "rows", _shown(output))
    elif kind is None:  # the rows of a factor are a table, too
        table = table_info(path)
        shown = {
            name: value
            for name, value in table.items()
            if name not in ("statistics", "columns", "schema", "fingerprint")
        }
        display.emit(table, "table", shown)
    elif kind == Factor.KIND:
        _emit(path, Factor.load(path), "factor", display)
    elif transformer := transformer_class(kind):
        _emit(path, transformer.load(path), "transformer", display)
    else:
        _emit(path, predicting_model(path), "model", display)


def _shown(output: RowOutput) -> Fields:
    found = output.info()
    first = output.first_row
    return {
        "path": output.place,
        "rows": output.n_rows,
        "of rows": f"{first}:{first + output.n_rows}",
        "columns": listed(found["columns"], 20),
        "classes": listed(found["classes"] or [], 20) or None,
        "targets": ", ".join(found["target_names"] or []) or None,
        "model digest": found["model_digest"],
    }


def _emit(path: str, saved: SavedBasis, title: str, display: Display) -> None:
    result = {"path": path, **_fields(saved), "digest": saved.digest}
    shown = readable(result)
    shown["kernel"] = kernel_of(saved)
    shown["rule_options"] = ", ".join(f"{name} {value}" for name, value in result["rule_options"].items()) or None
    shown["relative_residual_at_rank"] = ", ".join(
        f"{count(int(rank))}: {percent(left)}" for rank, left in result["relative_residual_at_rank"].items()
    )
    display.emit(result, title, shown)


def _own(saved: SavedBasis) -> Fields:
    """Fields that only this kind has."""
    own: Fields
    if isinstance(saved, PredictingModel):
        record, classes = saved.record, saved.record.classes
        own = {
            "estimator": record.estimator,
            "target_names": list(record.target_names),
            "classes": None if classes is None else list(classes),
        }
        return {**own, **saved.solution_fields(), **_seen_rows(record)}
    if isinstance(saved, Factor):
        return {"columns": None if saved.record.columns is None else saved.record.columns.dtype}
    assert isinstance(saved, TransformerModel)
    return {"estimator": saved.record.estimator, **saved.solution_fields()}


def _seen_rows(record: ModelRecord) -> Fields:
    """The rows and inputs that a model has seen, and its updates."""
    updates, seen = (record.updates, record.seen) if isinstance(record, UpdatableRecord) else (None, None)
    return {
        "rows_seen": record.row_count,
        "inputs_seen": len(seen or [None]),
        "updates": 0 if updates is None else updates.times,
        "stale": False if updates is None else updates.stale,
    }


def _fields(saved: SavedBasis) -> Fields:
    record, run = saved.record, saved.record.run
    return {
        **_own(saved),
        "rows": record.rows.count,
        "features": len(saved.column_names),
        "kernel": record.kernel,
        "lengthscale": saved.lengthscale,
        "metric": saved.metric_fields,
        "rule": record.rule,
        "rule_options": record.settings.rule_options,
        "basis_size": record.basis_size,
        "requested_basis": record.requested_basis,
        "ended": record.ended,
        **record.certificate.to_config(),
        "relative_residual_at_rank": _residual_at(saved),
        "sweeps": 0 if run is None else len(run.sweeps),
        "seconds": None if run is None else run.seconds,
        "peak_memory_bytes": None if run is None else run.peak_memory_bytes,
        "planned_memory_bytes": None if run is None else run.planned_memory_bytes,
    }


def _residual_at(saved: SavedBasis) -> dict[str, float]:
    """Shares of the trace that the first 1, 2, 4, ... n functions leave; keys are text, as in JSON."""
    path = saved.residual_path
    n = len(path) - 1
    ranks = sorted({int(rank) for rank in 2 ** np.arange(20) if rank < n} | {n})
    return {str(rank): float(path[rank] / path[0]) if path[0] else 0.0 for rank in ranks}
