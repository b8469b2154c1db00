"""streamkernel info STORE|MODEL|FACTOR"""

from __future__ import annotations

from typing import Any

import click

from streamkernel.cli.kinds import is_factor
from streamkernel.cli.options import common
from streamkernel.cli.output import emit
from streamkernel.estimators import RidgeModel
from streamkernel.factors import Factor
from streamkernel.store import bundle_kind
from streamkernel.table.info import table_info

__all__ = ["command"]


@click.command("info")
@click.argument("path")
@common
def command(path: str, as_json: bool, quiet: bool, debug: bool) -> None:
    """Show what the table, model or factor at PATH holds."""
    if is_factor(path):
        emit(_factor(path), as_json=as_json, title="factor")
        return
    if bundle_kind(path) is None:
        table = table_info(path)
        shown = {name: value for name, value in table.items() if name not in ("statistics", "columns", "fingerprint")}
        emit(table, as_json=as_json, title="table", shown=shown)
        return
    model = RidgeModel.load(path)
    config = model.config
    result = {
        "path": path,
        "estimator": config["estimator"],
        "kernel": config["kernel"],
        "lengthscale": config["lengthscale"],
        "alpha": config["alpha"],
        "basis_size": config["basis_size"],
        "rule": config["rule"],
        "features": len(config["columns"]),
        "target_names": config["target_names"],
        "classes": config["classes"],
        "rows": config["rows"]["count"],
        "sweeps": config["sweep_count"],
        **config["certificate"],
        "digest": model.digest,
    }
    emit(result, as_json=as_json, title="model")


def _factor(path: str) -> dict[str, Any]:
    factor = Factor.load(path)
    config = factor.config
    run = config.get("run", {})
    return {
        "path": path,
        "rows": config["rows"]["count"],
        "features": len(config["column_names"]),
        "basis_size": config["basis_size"],
        "requested_basis": config["requested_basis"],
        "ended": config["ended"],
        "rule": config["rule"],
        "kernel": config["kernel"],
        "lengthscale": config["lengthscale"],
        "columns": None if config["columns"] is None else config["columns"]["dtype"],
        "sweeps": len(run.get("sweeps", [])),
        **config["certificate"],
        "seconds": run.get("seconds"),
        "peak_memory_bytes": run.get("peak_memory_bytes"),
        "planned_memory_bytes": run.get("planned_memory_bytes"),
        "digest": factor.digest,
    }
