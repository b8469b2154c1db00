"""Which targets a kind takes: refused before any row is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.errors import ParameterError

if TYPE_CHECKING:
    from streamkernel.table import Table


def any_targets(table: Table, estimator: str) -> None:
    """Accept targets of any kind."""


def check_numbers(table: Table, estimator: str) -> None:
    """Raise ParameterError for class labels as targets of a regression."""
    if table.classes is None:
        return
    if estimator == "ridge":
        raise ParameterError("the target holds class labels; use the estimator ridge-classifier")
    other = "svc" if estimator == "svr" else "gp-classifier"
    raise ParameterError(f"the target holds class labels, {estimator} is a regression; use {other}")


def check_counts(table: Table, estimator: str) -> None:
    """Raise ParameterError unless the targets are one column of numbers."""
    if table.classes is not None:
        raise ParameterError(f"the target holds class labels, {estimator} is a regression of counts; use gp-classifier")
    if table.n_targets > 1:
        raise ParameterError(f"{estimator} takes one target, the table has {table.n_targets}; fit one at a time")
