"""streamkernel info STORE|MODEL"""

from __future__ import annotations

import click

from streamkernel.cli.options import common
from streamkernel.cli.output import emit
from streamkernel.estimators import RidgeModel
from streamkernel.store import bundle_kind
from streamkernel.table.info import table_info

__all__ = ["command"]


@click.command("info")
@click.argument("path")
@common
def command(path: str, as_json: bool, quiet: bool, debug: bool) -> None:
    """Show what the table or model at PATH holds."""
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
