"""The interface of a model that can be updated: its sums, and a method that makes a model from sums.

::

    fresh = session.sweep(model.reduction_of_rows(rows), new rows)
    model.with_sums(model.sums.merge(fresh))           the model of all rows, exact for its basis

A kind of model that has these can be given to `update_model`, and to `streamkernel update` by its row in
`cli/saved_objects.py`.
"""

from __future__ import annotations

from os import PathLike
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from streamkernel.basis import Basis
from streamkernel.models.predicting import Predicting
from streamkernel.records import UpdatableRecord
from streamkernel.reductions import Reduction
from streamkernel.table import Scaler, Table
from streamkernel.type_aliases import AnyArray, Fields, FieldsView


class Sums(Protocol):
    """Sums over rows, with the traces that measure how well the basis spans these rows.

    Attributes
    ----------
    count : number of rows.
    trace, residual_trace : exact traces of K and of ``K - K~`` over the rows.
    """

    @property
    def count(self) -> int: ...
    @property
    def trace(self) -> float: ...
    @property
    def residual_trace(self) -> float: ...

    def merge(self, other: Self) -> Self:
        """The sums over the rows of both."""
        ...


S = TypeVar("S", bound=Sums)


class Updatable(Protocol[S]):
    """A `SavedModel` that can be updated, such as `RidgeModel`."""

    @property
    def record(self) -> UpdatableRecord: ...

    @property
    def arrays(self) -> dict[str, AnyArray]: ...

    @property
    def basis(self) -> Basis: ...

    @property
    def digest(self) -> str: ...

    @property
    def scaler(self) -> Scaler | None: ...

    @property
    def sums(self) -> S:
        """The sums over all rows that the model has seen."""
        ...

    def prepare(self, table: Table) -> Table:
        """The rows, in the order of its columns and scaled as its basis is."""
        ...

    def prepare_targets(self, table: Table) -> Table:
        """The targets, in its classes."""
        ...

    def told(self) -> Fields:
        """The fields of the solution that commands print."""
        ...

    def predictions(self) -> Predicting:
        """The row map that predicts, on rows that are scaled already."""
        ...

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None: ...

    def with_parts(self, record: Any, arrays: dict[str, AnyArray]) -> Self:
        """A model of the same kind with another record, of its class, and other arrays."""
        ...

    def with_basis(self, basis: Basis) -> Self:
        """Return this model; it uses the given basis, which has its factor already."""
        ...

    def reduction_of_rows(self, rows: int) -> Reduction[S]:
        """The sums of rows that are scaled already.

        Parameters
        ----------
        rows : number of rows, those seen included; the method of summing depends on it.
        """
        ...

    def check_choices(self, choices: FieldsView) -> None:
        """Raise `ParameterError`, before any work, for choices that `with_sums` does not take."""
        ...

    def with_sums(self, sums: S, choices: FieldsView | None = None) -> Self:
        """The model that a fit with this basis, scaler and centre would give for the sums of all rows.

        Arrays and fields that follow from the sums are new, all others are kept.

        Parameters
        ----------
        choices : parameters that follow from sums (`alpha` of ridge regression): a value, "keep" for that of the model,
            or another option of the fit. The default is the choice of the fit.
        """
        ...


AnyUpdatable: TypeAlias = Updatable[Any]
"""A model with sums of any kind."""
