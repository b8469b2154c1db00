"""The targets of a table in the classes of a model."""

from __future__ import annotations

from dataclasses import replace

from streamkernel.errors import DataError, ShapeMismatchError
from streamkernel.table import Table
from streamkernel.table.values import listed
from streamkernel.type_aliases import AnyArray


def with_targets_of(table: Table, labels: AnyArray | None, d: int) -> Table:
    """A table with its targets coded by a model's classes `labels`; for None, after a check that it has d targets.

    Raises
    ------
    ShapeMismatchError, DataError
        See `PredictingModel.prepare_targets`.
    """
    targets = table.targets
    assert targets is not None
    if labels is None:
        if table.classes is not None:
            raise DataError(
                "the table's targets are class labels, the model is a regression; give targets that are numbers, "
                "or a classifier"
            )
        if table.n_targets != d:
            raise ShapeMismatchError(f"the table has {table.n_targets} targets, the model {d}; give equal ones")
        return table
    if targets.coded:
        assert targets.classes is not None
        if list(targets.classes) != list(labels):
            # Fewer rows may lack a class.
            return replace(table, targets=targets.recoded(labels))
        return table
    if labels.dtype.kind not in "biuf" and targets.rows.dtype.kind in "biuf":
        raise DataError(
            f"the table's targets are numbers, the model's classes are text ({listed(labels)}); "
            f"give targets with these labels"
        )
    return replace(table, targets=targets.of_classes(labels))
