"""streamkernel info STORE|MODEL|FACTOR"""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from streamkernel.cli.commands.update import seen_rows
from streamkernel.cli.options import common
from streamkernel.cli.output import emit, readable
from streamkernel.cli.saved_objects import fields_of, kind_of, predicting_model
from streamkernel.factors import BasisRecord, Factor
from streamkernel.kinds import transformer_class
from streamkernel.models.kernel_cca import KernelCCAModel
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.transformers import KernelPCAModel
from streamkernel.report.text import count, kernel_words, percent
from streamkernel.table.info import table_info

__all__ = ["command"]


@click.command("info")
@click.argument("path")
@common
def command(path: str, as_json: bool, quiet: bool, debug: bool) -> None:
    """Show what the table, model, transformer or factor at PATH holds."""
    kind = kind_of(path)
    if kind is None:
        table = table_info(path)
        shown = {name: value for name, value in table.items() if name not in ("statistics", "columns", "fingerprint")}
        emit(table, as_json=as_json, title="table", shown=shown)
    elif kind == Factor.KIND:
        _emit(path, Factor.load(path), "factor", as_json)
    elif transformer := transformer_class(kind):
        _emit(path, transformer.load(path), "transformer", as_json)
    else:
        _emit(path, predicting_model(path), "model", as_json)


def _emit(path: str, kept: BasisRecord, title: str, as_json: bool) -> None:
    with fields_of(path):
        result = {"path": path, **_told(kept), "digest": kept.digest}
        shown = readable(result)
        shown["kernel"] = kernel_words(result["kernel"])
        shown["rule_options"] = ", ".join(f"{name} {value}" for name, value in result["rule_options"].items()) or None
        shown["relative_residual_at_rank"] = ", ".join(
            f"{count(int(rank))}: {percent(left)}" for rank, left in result["relative_residual_at_rank"].items()
        )
        emit(result, as_json=as_json, title=title, shown=shown)


def _told(kept: BasisRecord) -> dict[str, Any]:
    config = kept.config
    run = config.get("run", {})
    own: dict[str, Any] = {}
    if isinstance(kept, PredictingModel):
        own = {name: config[name] for name in ("estimator", "target_names", "classes")} | kept.told()
        own |= seen_rows(config)
    elif isinstance(kept, Factor):
        own = {"columns": None if config["columns"] is None else config["columns"]["dtype"]}
    else:
        own = {"estimator": config["estimator"]}
        if "eigen" in config:
            own["components"] = config["eigen"]["count"]
            own["relative_residual_of_components"] = config["eigen"]["relative_residual_trace"]
        if isinstance(kept, KernelPCAModel) and kept.bound is not None:
            own["bound"], own["bound_is_vacuous"] = kept.bound.minimum, kept.bound.vacuous
            own["bound_is_least_at"] = kept.bound.best_size
        if isinstance(kept, KernelCCAModel):
            own |= kept.told()
    return {
        **own,
        "rows": config["rows"]["count"],
        "features": len(kept.column_names),
        "kernel": config["kernel"],
        "lengthscale": config["lengthscale"],
        "rule": config["rule"],
        "rule_options": config["settings"]["rule_options"],
        "basis_size": config["basis_size"],
        "requested_basis": config["requested_basis"],
        "ended": config["ended"],
        **config["certificate"],
        "relative_residual_at_rank": _residual_at(kept),
        "sweeps": len(run.get("sweeps", [])),
        "seconds": run.get("seconds"),
        "peak_memory_bytes": run.get("peak_memory_bytes"),
        "planned_memory_bytes": run.get("planned_memory_bytes"),
    }


def _residual_at(kept: BasisRecord) -> dict[str, float]:
    """Shares of the trace that the first 1, 2, 4, ... n functions leave; keys are text, as in JSON."""
    path = kept.residual_path
    n = len(path) - 1
    ranks = sorted({int(rank) for rank in 2 ** np.arange(20) if rank < n} | {n})
    return {str(rank): float(path[rank] / path[0]) if path[0] else 0.0 for rank in ranks}
