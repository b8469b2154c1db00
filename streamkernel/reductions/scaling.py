"""Scaled columns, for sums that need the rows as stored, too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.errors import NumericRangeError
from streamkernel.table import RowScaler
from streamkernel.type_aliases import AnyArray, AnyDType, Float


@dataclass(frozen=True)
class Scaling:
    """The scaled columns of rows, as a table with this scaler has them.

    Parameters
    ----------
    scaler : scaler of the columns; None for none.
    dtype : dtype of the scaled rows.
    width : numbers of a scaled row: its columns, or of sparse rows in pairs (`streamkernel.pairs`) their room.
    centre : (p,) means of the scaled columns of sparse rows, which no scaler takes off, as it would fill the zeros: who
        compares features does so in sums; None for dense rows, and where features are not compared.
    """

    scaler: RowScaler | None
    dtype: AnyDType
    width: int
    centre: Float | None = None

    @property
    def columns(self) -> int:
        """Number of scaled columns."""
        return self.width if self.centre is None else len(self.centre)

    def of(self, X: AnyArray) -> AnyArray:
        """Scaled rows (b, r) of stored ones (b, p).

        Raises
        ------
        NumericRangeError
            A scaled row is beyond the range of the dtype.
        """
        scaled = X if self.scaler is None else self.scaler.apply(X, self.dtype)
        if not np.isfinite(scaled).all():
            raise NumericRangeError(
                f"{int((~np.isfinite(scaled)).sum())} scaled numbers are beyond {self.dtype}; scale the columns"
            )
        return scaled
