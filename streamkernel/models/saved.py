"""The base class of the models: record and arrays, in memory as on disk; saving and loading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from typing import Self

from streamkernel.factors import SavedBasis
from streamkernel.kernels import UserKernel
from streamkernel.records import FittedRecord
from streamkernel.table import KnownColumns, Table
from streamkernel.table.schema import Schema
from streamkernel.type_aliases import AnyArray, Fields


@dataclass(frozen=True)
class SavedModel(SavedBasis):
    """Base of the models: everything that `save` writes and `load` reads back.

    Parameters
    ----------
    record : everything that is not an array; docs/model.md describes each field.
    arrays : arrays by name; `components` are basis points in scaled units.
    """

    record: FittedRecord
    arrays: dict[str, AnyArray]

    @property
    def column_names(self) -> list[str]:
        return list(self.record.columns)

    @property
    def known_columns(self) -> KnownColumns:
        known = self._known_columns(self.record.columns, self.record.named_columns)
        return replace(known, weight=self.record.weight_column)

    def prepare(self, table: Table) -> Table:
        """As of `SavedBasis`; of a table made by a schema, the columns have the meaning of those of the fit.

        Raises
        ------
        ShapeError, DataError
            The table has other columns, or columns of the same names that were made in another way.
        """
        prepared = super().prepare(table)
        if table.schema is not None and self.record.table_schema is not None:
            of_fit = Schema.from_config(self.record.table_schema, "the schema of the model")
            of_fit.check_features_of(Schema.from_config(table.schema), "the table", "the rows of the model")
        return prepared

    def solution_fields(self) -> Fields:
        """The fields of the solution that `streamkernel fit` prints."""
        return {}

    def shown_fields(self) -> Fields:
        return {"estimator": self.record.estimator, **super().shown_fields(), **self.solution_fields()}

    def fit_summary(self, path: str, seconds: float) -> Fields:
        """The fields that ``streamkernel fit --json`` prints about the model written to `path`."""
        record, run = self.record, self.record.run
        assert run is not None
        return {
            "model": path,
            "estimator": record.estimator,
            "basis_size": record.basis_size,
            "rule": record.rule,
            "ended": record.ended,
            "sweeps": record.sweep_count,
            **record.certificate.to_config(),
            "kernel": record.kernel,
            "lengthscale": self.lengthscale,
            "metric": self.metric_fields,
            **self.solution_fields(),
            "rows": record.rows.count,
            "seconds": seconds,
            "peak_memory_bytes": run.peak_memory_bytes,
            "planned_memory_bytes": run.planned_memory_bytes,
            "resumed_sweeps": sum(sweep.resumed for sweep in run.sweeps),
            "digest": self.digest,
        }

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model as a Zarr group with JSON beside it, in one step: a reader never sees a part of it.

        Raises
        ------
        ModelFormatError
            `load` would refuse it; nothing was written.
        """
        self.write(path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | PathLike[str], *, kernels: Iterable[UserKernel] = ()) -> Self:
        """Read a model back.

        Parameters
        ----------
        kernels : classes of the user's own kernels that the model may have; nothing is imported by a name in a file.

        Raises
        ------
        StoreNotFoundError, ModelFormatError, IncompleteStoreError, CorruptMetadataError, CorruptChunkError
        """
        return cls.read(path, kernels)
