"""A fitted kernel ridge model: configuration and named arrays, which is also how it lies on disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.basis import Basis
from streamkernel.errors import DataError, ModelFormatError, ShapeError, ShapeMismatchError
from streamkernel.kernels import kernel_from_config
from streamkernel.reductions import Predictions, RidgeSums
from streamkernel.store import Bundle, bundle_digest, read_bundle, write_bundle
from streamkernel.table import Scaler, Table

__all__ = ["KIND", "RidgeModel"]

KIND = "kernel-ridge"
VERSION = 1

_ARRAYS = (
    "components",
    "component_indices",
    "dual_coef",
    "intercept",
    "sum_H",
    "sum_g",
    "sum_YY",
    "sum_G1",
    "sum_Y1",
    "centre",
    "residual_path",
    "gains",
)


@dataclass(frozen=True)
class RidgeModel:
    """Parameters
    ----------
    config : everything that is not an array; docs/model.md describes each field.
    arrays : by name; `components` are basis points in scaled units.
    """

    config: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @cached_property
    def basis(self) -> Basis:
        kernel = kernel_from_config(self.config["kernel"])
        return Basis(kernel, np.ascontiguousarray(self.arrays["components"]), self.arrays["component_indices"])

    @property
    def scaler(self) -> Scaler | None:
        stored = self.config["scaler"]
        return None if stored is None else Scaler.from_config(stored)

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

    def prepare(self, table: Table) -> Table:
        """A table of raw rows, ready for this model: checked for its width, scaled as the rows of the fit were.

        Raises
        ------
        ShapeError
            Another number of columns than the model was fitted on.
        """
        expected = len(self.config["columns"])
        if table.n_features != expected:
            raise ShapeError(
                f"the table has {table.n_features} features, the model was fitted on {expected} "
                f"({', '.join(self.config['columns'][:5])}{', ...' if expected > 5 else ''}); "
                "predict on rows with the same columns"
            )
        return table.with_scaler(self.scaler)

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

    @property
    def digest(self) -> str:
        """SHA-256 of everything but times, memory and where it ran: equal fits, equal digests."""
        return bundle_digest(self._bundle())

    def _bundle(self) -> Bundle:
        return Bundle(KIND, VERSION, self.config, self.arrays)

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model as a Zarr group with JSON beside it, whole or not at all."""
        write_bundle(path, self._bundle(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> RidgeModel:
        """Read a model back.

        Raises
        ------
        StoreNotFoundError, ModelFormatError, CorruptMetadataError, CorruptChunkError
        """
        bundle = read_bundle(path, KIND, versions=(VERSION,), arrays=_ARRAYS)
        model = cls(bundle.config, bundle.arrays)
        try:
            n, p = model.arrays["components"].shape
            d = model.arrays["dual_coef"].shape[1]
            consistent = (
                len(model.arrays["component_indices"]) == n == len(model.arrays["dual_coef"])
                and model.arrays["intercept"].shape == (d,)
                and len(model.config["columns"]) == p
            )
            assert model.basis.kernel is not None
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise ModelFormatError(f"{path} is not a kernel ridge model: {error}; fit it again") from error
        if not consistent:
            raise ModelFormatError(f"{path}: the shapes of its arrays disagree; fit it again")
        return model
