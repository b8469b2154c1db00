"""A model and a table, opened for each other: what evaluate, predict and report share."""

from __future__ import annotations

from typing import Any

from streamkernel.cli.options import cut
from streamkernel.errors import ParameterError
from streamkernel.estimators import RidgeModel
from streamkernel.table import Table, open_table

__all__ = ["opened"]


def opened(model: RidgeModel, store: str, bounds: tuple[int | None, int | None] | None, *, targets: bool) -> Table:
    """The rows of a store, scaled for the model; with `targets` also y, in the model's classes."""
    table: Any = cut(open_table(store), bounds)
    if not targets:
        return model.prepare(table.without_targets())
    if table.n_targets == 0:
        raise ParameterError(f"{store} has no targets to compare predictions with; ingest it with --target")
    return model.prepare(model.prepare_targets(table))
