"""The scaler of sparse columns: division alone, because a shift would fill the zeros."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.pairs import columns_in, values_in
from streamkernel.table.scaler import numbers
from streamkernel.table.statistics import ColumnStatistics
from streamkernel.type_aliases import AnyArray, Float


@dataclass(frozen=True, eq=False)
class SparseScaler:
    """``x_j -> x_j / scale_j`` of sparse rows in pairs, which stay sparse.

    Kernels of a distance have the values that they have on columns of mean 0 and deviation 1: a shift of all rows
    changes no distance.

    Parameters
    ----------
    scale : (d,) float64, finite and positive.

    Raises
    ------
    ParameterError
        A number is not finite, or not positive.
    """

    scale: Float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", numbers(self.scale, "the scale"))
        if not (self.scale > 0).all():
            raise ParameterError("the scale of a scaler must be positive; use scale 1 for constant columns")

    @classmethod
    def of(cls, statistics: ColumnStatistics) -> SparseScaler:
        """Division by the deviation, ``sqrt(mean (x - mean x)^2)`` over all rows, zeros too; constant columns stay."""
        return cls(np.where(statistics.constant | (statistics.std <= 0.0), 1.0, statistics.std))

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        return int(self.scale.size)

    @property
    def width(self) -> int:
        """Number of mapped columns, d."""
        return self.n_features

    @property
    def mean(self) -> Float:
        """(d,) a typical row: no entries."""
        return np.zeros(self.n_features)

    @property
    def invertible(self) -> bool:
        """True: no two rows have one image."""
        return True

    def apply(self, X: AnyArray, dtype: DTypeLike) -> AnyArray:
        """Mapped rows in pairs (b, 2 w), a new array."""
        out = np.array(X, dtype=dtype, order="C")
        # Overflow gives infinity, which the table's range check reports with its row.
        with np.errstate(over="ignore"):
            values_in(out)[:] /= self._of_entries(X)
        return out

    def unscaled(self, Z: AnyArray) -> Float:
        """Rows in the units of the columns, in pairs (b, 2 w) float64."""
        rows = np.array(Z, dtype=np.float64, order="C")
        values_in(rows)[:] *= self._of_entries(rows)
        return rows

    def _of_entries(self, X: AnyArray) -> Float:
        columns = columns_in(X).astype(np.int64)
        if columns.size and int(columns.max()) >= self.n_features:
            raise ShapeError(
                f"the scaler knows {self.n_features} columns, the rows have column {int(columns.max())}; give the "
                "same columns"
            )
        found: Float = self.scale[columns]
        return found

    def of_columns(self, columns: list[int]) -> SparseScaler:
        """The scaler of some columns, in this order."""
        return SparseScaler(self.scale[columns])

    def to_config(self) -> dict[str, list[float]]:
        """Plain JSON lists."""
        return {"scale": self.scale.tolist()}
