"""Count, mean, deviation, minimum and maximum of every column, gathered block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.pairs import csr_parts
from streamkernel.type_aliases import AnyArray, Bool, Fields, Float, Int

# Ranges whose squares, in sums over any table, neither vanish nor overflow.
_LEAST, _LARGEST = 1e-140, 1e140


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Per column: ``mean = sum w x / W``, ``std = sqrt(sum w (x - mean)^2 / W)`` (population), min, max; ``W = sum w``.

    Without row weights every w is 1 and W the number of rows; with them row i counts as if it stood w_i times.

    Two parts are combined with the pairwise update of Chan, Golub & LeVeque (1983), eq. (2.1):
    ``S = S_a + S_b + (mean_b - mean_a)^2 W_a W_b / W`` for the sum of squared deviations S, which does not
    cancel for columns with a large offset as ``sum w x^2 - W mean^2`` would.

    Attributes
    ----------
    count
        Number of rows, also those of weight 0.
    mean, std, minimum, maximum
        (p,) float64 each, of the rows of weight > 0. Where there is none: 0, 0, infinity and -infinity, which change
        nothing in a merge.
    weight
        Sum W of the row weights; None for rows without weights.
    """

    count: int
    mean: Float
    std: Float
    minimum: Float
    maximum: Float
    weight: float | None = None

    @classmethod
    def of(cls, values: AnyArray, weights: Float | None = None) -> ColumnStatistics:
        """Statistics of rows (b, p), b >= 1, with row weights (b,) >= 0 where these are given."""
        if weights is not None and not (weights == 1.0).all():
            return cls._weighted(values, weights)
        rows = np.asarray(values, dtype=np.float64)
        low, high = rows.min(axis=0), rows.max(axis=0)
        powers = _powers(low, high)
        if powers is not None:
            return cls.of(np.ldexp(rows, -powers), weights)._times(powers)
        # One row is subtracted first: the mean of a column with offset 1e8 then keeps the digits of its deviations.
        origin = rows[0]
        shifted = rows - origin
        shift = shifted.mean(axis=0)
        shifted -= shift
        # The rounding of `shift` leaves a small mean; subtracting it makes the two-pass sum exact to rounding.
        rest = shifted.mean(axis=0)
        squares = np.einsum("ij,ij->j", shifted, shifted) - rows.shape[0] * rest * rest
        std = np.sqrt(np.maximum(squares, 0.0) / rows.shape[0])
        weight = None if weights is None else float(rows.shape[0])
        return cls(rows.shape[0], origin + (shift + rest), std, low, high, weight)

    @classmethod
    def _weighted(cls, values: AnyArray, weights: Float) -> ColumnStatistics:
        """The same two passes, with weights."""
        count, p = values.shape
        kept = weights > 0.0
        if not kept.any():
            return cls(count, np.zeros(p), np.zeros(p), np.full(p, np.inf), np.full(p, -np.inf), 0.0)
        # A row of weight 0 must not be seen at all: not as the origin, nor as a square that overflows.
        if not kept.all():
            values, weights = values[kept], weights[kept]
        rows = np.asarray(values, dtype=np.float64)
        low, high = rows.min(axis=0), rows.max(axis=0)
        powers = _powers(low, high)
        if powers is not None:
            return replace(cls._weighted(np.ldexp(rows, -powers), weights)._times(powers), count=count)
        total = float(weights.sum())
        origin = rows[0]
        shifted = rows - origin
        shift = np.einsum("i,ij->j", weights, shifted) / total
        shifted -= shift
        rest = np.einsum("i,ij->j", weights, shifted) / total
        squares = np.einsum("i,ij,ij->j", weights, shifted, shifted) - total * rest * rest
        std = np.sqrt(np.maximum(squares, 0.0) / total)
        return cls(count, origin + (shift + rest), std, low, high, total)

    @classmethod
    def of_pairs(cls, pairs: AnyArray, n_columns: int, weights: Float | None = None) -> ColumnStatistics:
        """Statistics of sparse rows in pairs, b >= 1, of so many columns; `weights` as of `of`."""
        return cls.of_csr(*csr_parts(pairs), n_columns, weights)

    @classmethod
    def of_csr(
        cls, indptr: Int, columns: Int, values: Float, n_columns: int, weights: Float | None = None
    ) -> ColumnStatistics:
        """Statistics of sparse rows in CSR (`pairs.csr_parts`), b >= 1, of so many columns; `weights` as of `of`.

        ``S_j = sum over entries w (x - mean_j)^2 + (W - sum over entries w) mean_j^2``: no dense column is made.
        """
        counts = np.diff(indptr)
        b, weight = len(counts), None if weights is None else float(weights.sum())
        w = np.ones(b) if weights is None else weights
        kept = w > 0.0
        if not kept.all():
            there = np.repeat(kept, counts)
            columns, values, counts, w = columns[there], values[there], counts[kept], w[kept]
        if not len(counts):
            nothing = np.zeros(n_columns)
            return cls(b, nothing, nothing.copy(), np.full(n_columns, np.inf), np.full(n_columns, -np.inf), 0.0)
        total, of_entries = float(w.sum()), np.repeat(w, counts)
        whole = np.bincount(columns, minlength=n_columns) == len(counts)
        low, high = np.where(whole, np.inf, 0.0), np.where(whole, -np.inf, 0.0)
        np.minimum.at(low, columns, values)
        np.maximum.at(high, columns, values)
        powers = _powers(low, high)
        if powers is not None:
            starts = np.concatenate([[0], np.cumsum(counts)])
            scaled = cls.of_csr(starts, columns, np.ldexp(values, -powers[columns]), n_columns, w)
            return replace(scaled._times(powers), count=b, weight=weight)
        mean = np.bincount(columns, of_entries * values, n_columns) / total
        squares = np.bincount(columns, of_entries * (values - mean[columns]) ** 2, n_columns)
        squares = squares + np.maximum(total - np.bincount(columns, of_entries, n_columns), 0.0) * mean**2
        return cls(b, mean, np.sqrt(squares / total), low, high, weight)

    @property
    def total(self) -> float:
        """Sum W of the row weights: the number of rows without weights."""
        return float(self.count) if self.weight is None else self.weight

    def merge(self, other: ColumnStatistics) -> ColumnStatistics:
        """Statistics of the rows of both; rows without weights count once where the others have weights."""
        if self.mean.shape != other.mean.shape:
            raise ParameterError(f"cannot merge statistics of {self.mean.size} and {other.mean.size} columns")
        count, total = self.count + other.count, self.total + other.total
        weight = None if self.weight is None and other.weight is None else total
        if self.total == 0.0 or other.total == 0.0:
            return replace(other if self.total == 0.0 else self, count=count, weight=weight)
        powers = _powers(np.minimum(self.minimum, other.minimum), np.maximum(self.maximum, other.maximum))
        if powers is not None:
            return self._times(-powers).merge(other._times(-powers))._times(powers)
        step = other.mean - self.mean
        share = other.total / total
        squares = self.total * self.std**2 + other.total * other.std**2 + step**2 * (self.total * share)
        return ColumnStatistics(
            count,
            self.mean + step * share,
            np.sqrt(squares / total),
            np.minimum(self.minimum, other.minimum),
            np.maximum(self.maximum, other.maximum),
            weight,
        )

    def _times(self, powers: Int) -> ColumnStatistics:
        """The statistics of the columns times powers of two, (p,) exponents."""
        with np.errstate(over="ignore", under="ignore"):
            mean, std, low, high = (
                np.ldexp(values, powers) for values in (self.mean, self.std, self.minimum, self.maximum)
            )
        return replace(self, mean=mean, std=std, minimum=low, maximum=high)

    def of_columns(self, columns: list[int]) -> ColumnStatistics:
        """Statistics of some columns, in this order."""
        mean, std, low, high = (values[columns] for values in (self.mean, self.std, self.minimum, self.maximum))
        return ColumnStatistics(self.count, mean, std, low, high, self.weight)

    @property
    def constant(self) -> Bool:
        """(p,) True where every row holds one value."""
        return np.equal(self.minimum, self.maximum)

    def to_config(self) -> Fields:
        """Plain JSON; `weight` only where there are weights."""
        config: Fields = {
            "count": self.count,
            "mean": self.mean.tolist(),
            "std": self.std.tolist(),
            "min": self.minimum.tolist(),
            "max": self.maximum.tolist(),
        }
        return config if self.weight is None else {**config, "weight": self.weight}

    @classmethod
    def from_config(cls, config: Fields) -> ColumnStatistics:
        """The statistics that `to_config` wrote."""
        mean, std, low, high = (np.array(config[name], dtype=np.float64) for name in ("mean", "std", "min", "max"))
        if mean.ndim != 1 or not mean.shape == std.shape == low.shape == high.shape:
            raise ValueError("column statistics of several lengths")
        weight = config.get("weight")
        return cls(int(config["count"]), mean, std, low, high, None if weight is None else float(weight))

    def to_arrays(self, prefix: str = "") -> dict[str, AnyArray]:
        """Fields as arrays, named by `prefix` and the field: a sweep combines them, a checkpoint stores them.

        `weight` is there only where there are weights.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {f"{prefix}{name}": np.asarray(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray], prefix: str = "") -> ColumnStatistics:
        """Read the result of `to_arrays`; `arrays` may contain other arrays."""
        names = ("count", "mean", "std", "minimum", "maximum")
        count, mean, std, low, high = (arrays[f"{prefix}{name}"] for name in names)
        weight = arrays.get(f"{prefix}weight")
        return cls(int(count), mean, std, low, high, None if weight is None else float(weight))


def _powers(low: Float, high: Float) -> Int | None:
    """(p,) exponents of powers of two by which columns are divided, so that their squares neither vanish nor overflow.

    None where the ranges need none, which is so for nearly all tables: their sums have the bits that they had.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        width = high - low
    odd = ((width > 0.0) & (width < _LEAST)) | ((width > _LARGEST) & np.isfinite(low) & np.isfinite(high))
    if not odd.any():
        return None
    largest = np.where(odd, np.maximum(np.abs(low), np.abs(high)), 1.0)
    return np.where(odd, np.frexp(largest)[1], 0)


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
