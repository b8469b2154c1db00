"""The base class of the models that can be updated: their sums, and a method that makes a model from sums.

::

    fresh = session.sweep(model.reduction_of_rows(rows), new rows)
    model.with_sums(model.sums.merge(fresh))           the model of all rows, exact for its basis
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from streamkernel.errors import ParameterError
from streamkernel.models.predicting import PredictingModel
from streamkernel.records import UpdatableRecord
from streamkernel.reductions.contract import AnyReduction
from streamkernel.type_aliases import FieldsView


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


@dataclass(frozen=True)
class UpdatableModel(PredictingModel):
    """Base of the models that can be given to `update_model`, such as `RidgeModel`."""

    RECORD: ClassVar[type[UpdatableRecord]]
    CHOICE: ClassVar[str]  # the parameter that follows from the sums

    record: UpdatableRecord

    @property
    @abstractmethod
    def sums(self) -> Any:
        """The `Sums` over all rows that the model has seen."""

    @abstractmethod
    def reduction_of_rows(self, rows: int) -> AnyReduction:
        """The sums of rows that are scaled already.

        Parameters
        ----------
        rows : number of rows, those seen included; the method of summing depends on it.
        """

    def check_choices(self, choices: FieldsView) -> None:
        """Raise `ParameterError`, before any work, for choices that `with_sums` does not take."""
        for name in choices:
            if name != self.CHOICE:
                raise ParameterError(f"a {self.record.estimator} model has no {name!r} to choose; it has {self.CHOICE}")

    def note_of_update(self, choices: FieldsView, updated: Self) -> str:
        """A line for the user about a choice of the fit that an update cannot make again; "" for none.

        Parameters
        ----------
        updated : the model after the update.
        """
        return ""

    @abstractmethod
    def with_sums(self, sums: Any, choices: FieldsView | None = None) -> Self:
        """The model that a fit with this basis, scaler and centre would give for the sums of all rows.

        Arrays and fields that follow from the sums are new, all others are kept.

        Parameters
        ----------
        choices : the parameter `CHOICE`: a value, "keep" for that of the model, or another option of the fit. The
            default is the choice of the fit.
        """
