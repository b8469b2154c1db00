"""Scaled columns, for sums that need the rows as stored, too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.errors import NumericRangeError
from streamkernel.table import RowScaler
from streamkernel.type_aliases import AnyArray, AnyDType


@dataclass(frozen=True)
class Scaling:
    """The scaled columns of rows, as a table with this scaler has them.

    Parameters
    ----------
    scaler : scaler of the columns; None for none.
    dtype : dtype of the scaled rows.
    width : number of scaled columns.
    """

    scaler: RowScaler | None
    dtype: AnyDType
    width: int

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
