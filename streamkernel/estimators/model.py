"""A fitted kernel ridge model: configuration and named arrays, which is also how it lies on disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import DataError, ShapeMismatchError
from streamkernel.estimators.saved import SavedModel
from streamkernel.reductions import Predictions, RidgeSums
from streamkernel.table import Table

__all__ = ["RidgeModel"]


@dataclass(frozen=True)
class RidgeModel(SavedModel):
    """Parameters
    ----------
    config : everything that is not an array; docs/model.md describes each field.
    arrays : by name; `components` are basis points in scaled units.
    """

    KIND: ClassVar[str] = "kernel-ridge"
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        **SavedModel.SHAPES,
        "dual_coef": ("n", "d"),
        "intercept": ("d",),
        "sum_H": ("n", "n"),
        "sum_g": ("n", "d"),
        "sum_YY": ("d", "d"),
        "sum_G1": ("n",),
        "sum_Y1": ("d",),
        "centre": ("d",),
    }
    _NOUN: ClassVar[str] = "kernel ridge model"

    config: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @property
    def classes(self) -> NDArray[Any] | None:
        labels = self.config["classes"]
        return None if labels is None else np.asarray(labels)

    @property
    def sums(self) -> RidgeSums:
        """The sums of the final sweep: what appended rows are added to."""
        totals = self.config["totals"]
        return RidgeSums(
            **{name: self.arrays[f"sum_{name}"] for name in ("H", "g", "YY", "G1", "Y1")},
            centre=self.arrays["centre"],
            weight=totals["weight"],
            trace=totals["trace"],
            count=totals["rows"],
        )

    def predictions(self, *, argmax: bool = False) -> Predictions:
        """The row map that predicts, on rows that are scaled already."""
        return Predictions(
            self.basis,
            self.arrays["dual_coef"],
            self.arrays["intercept"],
            argmax=argmax,
            flat=not self.config.get("targets_are_2d", False),
        )

    def prepare_targets(self, table: Table) -> Table:
        """The same table with its targets in the model's classes, for scoring.

        Raises
        ------
        ShapeMismatchError, DataError
            Another number of targets, or labels that the model does not know.
        """
        labels, targets = self.classes, table.targets
        assert targets is not None
        if labels is None:
            d = self.arrays["dual_coef"].shape[1]
            if table.classes is not None:
                raise DataError(
                    "the table's targets are class labels, the model is a regression; evaluate a classifier"
                )
            if table.n_targets != d:
                raise ShapeMismatchError(f"the table has {table.n_targets} targets, the model {d}; give equal ones")
            return table
        if targets.coded:
            assert targets.classes is not None
            if list(targets.classes) != list(labels):
                raise DataError(
                    f"the table's classes ({', '.join(map(str, targets.classes[:5]))}) are not the model's "
                    f"({', '.join(map(str, labels[:5]))}); ingest rows with the same set of labels"
                )
            return table
        return replace(table, targets=replace(targets, classes=labels))
