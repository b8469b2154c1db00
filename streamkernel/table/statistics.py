"""Count, mean, deviation, minimum and maximum of every column, gathered block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.type_aliases import AnyArray, Bool, Fields, Float


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Per column: ``n``, ``mean = sum x / n``, ``std = sqrt(sum (x - mean)^2 / n)`` (population), min, max.

    Two parts are combined with the pairwise update of Chan, Golub & LeVeque (1983), eq. (2.1):
    ``S = S_a + S_b + (mean_b - mean_a)^2 n_a n_b / n`` for the sum of squared deviations S, which does not
    cancel for columns with a large offset as ``sum x^2 - n mean^2`` would.

    Attributes
    ----------
    count
        Number of rows n.
    mean, std, minimum, maximum
        (p,) float64 each.
    """

    count: int
    mean: Float
    std: Float
    minimum: Float
    maximum: Float

    @classmethod
    def of(cls, values: AnyArray) -> ColumnStatistics:
        """Statistics of rows (b, p), b >= 1."""
        rows = np.asarray(values, dtype=np.float64)
        # One row is subtracted first: the mean of a column with offset 1e8 then keeps the digits of its deviations.
        origin = rows[0]
        shifted = rows - origin
        shift = shifted.mean(axis=0)
        shifted -= shift
        # The rounding of `shift` leaves a small mean; subtracting it makes the two-pass sum exact to rounding.
        rest = shifted.mean(axis=0)
        squares = np.einsum("ij,ij->j", shifted, shifted) - rows.shape[0] * rest * rest
        std = np.sqrt(np.maximum(squares, 0.0) / rows.shape[0])
        return cls(rows.shape[0], origin + (shift + rest), std, rows.min(axis=0), rows.max(axis=0))

    def merge(self, other: ColumnStatistics) -> ColumnStatistics:
        """Statistics of the rows of both."""
        if self.mean.shape != other.mean.shape:
            raise ParameterError(f"cannot merge statistics of {self.mean.size} and {other.mean.size} columns")
        if self.count == 0 or other.count == 0:
            return other if self.count == 0 else self
        count = self.count + other.count
        step = other.mean - self.mean
        share = other.count / count
        squares = self.count * self.std**2 + other.count * other.std**2 + step**2 * (self.count * share)
        return ColumnStatistics(
            count,
            self.mean + step * share,
            np.sqrt(squares / count),
            np.minimum(self.minimum, other.minimum),
            np.maximum(self.maximum, other.maximum),
        )

    def of_columns(self, columns: list[int]) -> ColumnStatistics:
        """Statistics of some columns, in this order."""
        parts = (self.mean, self.std, self.minimum, self.maximum)
        return ColumnStatistics(self.count, *(values[columns] for values in parts))

    @property
    def constant(self) -> Bool:
        """(p,) True where every row holds one value."""
        return np.equal(self.minimum, self.maximum)

    def to_config(self) -> Fields:
        """Plain JSON."""
        return {
            "count": self.count,
            "mean": self.mean.tolist(),
            "std": self.std.tolist(),
            "min": self.minimum.tolist(),
            "max": self.maximum.tolist(),
        }

    @classmethod
    def from_config(cls, config: Fields) -> ColumnStatistics:
        """The statistics that `to_config` wrote."""
        mean, std, low, high = (np.array(config[name], dtype=np.float64) for name in ("mean", "std", "min", "max"))
        if mean.ndim != 1 or not mean.shape == std.shape == low.shape == high.shape:
            raise ValueError("column statistics of several lengths")
        return cls(int(config["count"]), mean, std, low, high)

    def to_arrays(self, prefix: str = "") -> dict[str, AnyArray]:
        """Fields as arrays, named by `prefix` and the field: a sweep combines them, a checkpoint stores them."""
        return {f"{prefix}{field.name}": np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray], prefix: str = "") -> ColumnStatistics:
        """Read the result of `to_arrays`; `arrays` may contain other arrays."""
        count, *rest = (arrays[f"{prefix}{field.name}"] for field in fields(cls))
        return cls(int(count), *rest)


@dataclass(frozen=True)
class TableStatistics:
    """Column statistics of X and, for numeric targets, of y."""

    X: ColumnStatistics
    y: ColumnStatistics | None

    def of_columns(self, columns: list[int]) -> TableStatistics:
        """The statistics with some columns of X, in this order."""
        return TableStatistics(self.X.of_columns(columns), self.y)

    def to_config(self) -> Fields:
        """Plain JSON."""
        return {"X": self.X.to_config(), "y": None if self.y is None else self.y.to_config()}

    @classmethod
    def from_config(cls, config: Fields) -> TableStatistics:
        """The statistics that `to_config` wrote."""
        y = config.get("y")
        return cls(ColumnStatistics.from_config(config["X"]), None if y is None else ColumnStatistics.from_config(y))
