"""Sums that can be added to the sums over other rows of the same basis."""

from __future__ import annotations

from dataclasses import fields
from typing import Self

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.type_aliases import Fields


class MergeableSums:
    """Base of dataclasses whose fields are sums over rows, except `centre`, which both sides share.

    Sums of new rows are added to those of a fit: the result is the sums over all rows (`update`, committees).
    """

    def merge(self, other: Self) -> Self:
        """The sums over both sets of rows.

        Raises
        ------
        ParameterError
            The two sums have different numbers of functions or different centres.
        """
        return self._joined(other, 1.0)

    def without(self, other: Self) -> Self:
        """The sums over these rows without those of `other`, which are among them; errors as in `merge`."""
        return self._joined(other, -1.0)

    def _joined(self, other: Self, sign: float) -> Self:
        both: Fields = {}
        for field in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            ours, theirs = getattr(self, field.name), getattr(other, field.name)
            alike = np.array_equal(ours, theirs) if field.name == "centre" else np.shape(ours) == np.shape(theirs)
            if not alike:
                raise ParameterError(
                    f"sums of {self._functions} and of {other._functions} cannot be added ({field.name} differs); "
                    "sweep the new rows with the basis and the centre of the model"
                )
            both[field.name] = ours if field.name == "centre" else ours + theirs if sign > 0.0 else ours - theirs
        return type(self)(**both)

    @property
    def _functions(self) -> str:
        """Number of functions and the centre, for messages."""
        matrix = np.asarray(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]
        centre = getattr(self, "centre", None)
        return f"{matrix.shape[-1]} functions" + ("" if centre is None else f" about {centre}")
