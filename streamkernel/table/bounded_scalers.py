"""Scalers whose columns are bounded: a row far from all others is no farther than the ends of each column."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.table.scaler import ColumnScaler, Scaler, numbers
from streamkernel.type_aliases import AnyArray, Fields, Float, Int


@dataclass(frozen=True, eq=False)
class ClippedScaler(ColumnScaler):
    """``x -> (min(max(x, lower), upper) - mean) / scale``, column by column, computed in float64.

    Parameters
    ----------
    mean, scale
        (p,) float64; every scale finite and positive.
    lower, upper
        (p,) float64, finite; ``lower <= upper``.

    Raises
    ------
    ParameterError
        The lengths differ, or the numbers are not such.
    """

    mean: Float
    scale: Float
    lower: Float
    upper: Float

    def __post_init__(self) -> None:
        affine = Scaler(self.mean, self.scale)
        p = affine.n_features
        for name, values in (
            ("mean", affine.mean),
            ("scale", affine.scale),
            ("lower", numbers(self.lower, "the lower end", p)),
            ("upper", numbers(self.upper, "the upper end", p)),
        ):
            object.__setattr__(self, name, values)
        if not (self.lower <= self.upper).all():
            column = int(np.flatnonzero(self.lower > self.upper)[0])
            raise ParameterError(
                f"the ends of column {column} of a scaler are {self.lower[column]:g} and {self.upper[column]:g}; the "
                "lower one must come first"
            )

    @property
    def invertible(self) -> bool:
        """False: values beyond an end have one image."""
        return False

    def _map(self, X: AnyArray, out: AnyArray) -> None:
        rows = X.astype(np.float64)
        finite = np.isfinite(rows)
        np.clip(rows, self.lower, self.upper, out=rows)
        rows -= self.mean
        np.divide(rows, self.scale, out=out, casting="same_kind")
        _mark_not_finite(out, finite)

    def unscaled(self, Z: AnyArray) -> Float:
        """Rows in the units of the columns, ``Z scale + mean``, (b, p) float64: clipped rows."""
        return Z.astype(np.float64) * self.scale + self.mean

    def of_columns(self, columns: list[int]) -> ClippedScaler:
        """The scaler of some columns, in this order."""
        return ClippedScaler(self.mean[columns], self.scale[columns], self.lower[columns], self.upper[columns])

    def to_config(self) -> dict[str, list[float]]:
        """Plain JSON lists."""
        names = ("mean", "scale", "lower", "upper")
        return {name: getattr(self, name).tolist() for name in names}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClippedScaler) and self.to_config() == other.to_config()

    def __hash__(self) -> int:
        return hash(tuple(values.tobytes() for values in (self.mean, self.scale, self.lower, self.upper)))


@dataclass(frozen=True, eq=False)
class RankScaler(ColumnScaler):
    """A monotone piecewise linear map of each column, constant beyond its ends, computed in float64.

    The map of column j goes through the points ``(knots, values)`` of that column; it is `numpy.interp`.

    Parameters
    ----------
    mean
        (p,) float64, a typical row: the columns' medians.
    knots
        (k,) float64: those of the first column, ascending, then those of the second one, and so on.
    values
        (k,) float64, the images of the knots, never descending within a column.
    counts
        (p,) int64, number of knots of each column, at least 1.

    Raises
    ------
    ParameterError
        The lengths disagree, or the numbers are not such.
    """

    mean: Float
    knots: Float
    values: Float
    counts: Int

    LEAST_ROWS: ClassVar[int] = 256  # a call of `np.interp` costs as much as some 50 values

    def __post_init__(self) -> None:
        mean = numbers(self.mean, "the mean")
        counts = np.array(self.counts)
        if counts.dtype.kind not in "iu" or counts.shape != mean.shape or (counts < 1).any():
            raise ParameterError(
                f"a rank scaler of {len(mean)} columns has a count of knots for each, at least 1; got {counts!r:.60}"
            )
        counts = counts.astype(np.int64)
        counts.setflags(write=False)
        total = int(counts.sum())
        knots, values = numbers(self.knots, "knots", total), numbers(self.values, "values of knots", total)
        for name, part in (("mean", mean), ("knots", knots), ("values", values), ("counts", counts)):
            object.__setattr__(self, name, part)
        # Where a column begins, knots may step back.
        inside = np.ones(total, dtype=bool)
        inside[np.cumsum(counts)[:-1]] = False
        with np.errstate(over="ignore"):
            steps, rises = np.diff(knots), np.diff(values)
        if not (((steps > 0) & np.isfinite(steps) & (rises >= 0)) | ~inside[1:]).all():
            raise ParameterError("knots of a rank scaler must ascend in each column, within range, and values not fall")

    def __getstate__(self) -> Fields:
        # The cut of the arrays is cheap to make again.
        return {name: getattr(self, name) for name in ("mean", "knots", "values", "counts")}

    def __setstate__(self, state: Fields) -> None:
        self.__dict__.update(state)

    @property
    def invertible(self) -> bool:
        """False: values beyond an end have one image."""
        return False

    @cached_property
    def _columns(self) -> list[tuple[Float, Float]]:
        """Knots and values of each column."""
        ends = np.cumsum(self.counts)[:-1]
        return list(zip(np.split(self.knots, ends), np.split(self.values, ends), strict=True))

    def _map(self, X: AnyArray, out: AnyArray) -> None:
        rows = np.asarray(X, dtype=np.float64)
        for j, (knots, values) in enumerate(self._columns):
            out[:, j] = np.interp(rows[:, j], knots, values)
        _mark_not_finite(out, np.isfinite(rows))

    def unscaled(self, Z: AnyArray) -> Float:
        """Rows (b, p) float64 in the units of the columns, within their ends, which have the images Z (b, p)."""
        out = np.empty(Z.shape)
        for j, (knots, values) in enumerate(self._columns):
            out[:, j] = np.interp(Z[:, j], values, knots)
        return out

    def of_columns(self, columns: list[int]) -> RankScaler:
        """The scaler of some columns, in this order."""
        parts = [self._columns[column] for column in columns]
        knots, values = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
        return RankScaler(self.mean[columns], knots, values, self.counts[columns])

    def to_config(self) -> dict[str, Any]:
        """The typical row, and the digest of the map."""
        return {"mean": self.mean.tolist(), "knots": self._digest}

    @cached_property
    def _digest(self) -> str:
        arrays = (self.mean, self.knots, self.values, self.counts)
        return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RankScaler) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)


def _mark_not_finite(out: AnyArray, finite: AnyArray) -> None:
    """Write NaN where a value was not finite.

    An infinity that is clipped would be a number, and the check of the rows would not report it.
    """
    if not finite.all():
        out[~finite] = np.nan
