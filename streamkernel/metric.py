"""A metric of the rows: a linear map of the scaled columns, in which a radial kernel measures distances.

With scaled columns x (p,) and a map T (p, r)::

    u = T^T x,    |u - u'|^2 = (x - x')^T T T^T (x - x')

so that a kernel of one lengthscale on u weighs directions of x differently (ALGORITHMS 19). The map belongs to the
scaler of a table: kernels, selection, sums and predictions only see rows of r columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from streamkernel.atomic import array_digest
from streamkernel.errors import ParameterError
from streamkernel.kernels import Linear, PreparedKernel, packed_bytes
from streamkernel.table import RowScaler
from streamkernel.type_aliases import AnyArray, Fields, Float

# Rows mapped at a time: their float64 copies stay in the cache, and memory does not double for float32 tables.
_PIECE_BYTES = 1 << 19


@dataclass(frozen=True, eq=False)
class MetricScaler:
    """``x -> T^T s(x)`` with the scaler s of the columns, such as ``(x - mean) / scale``; row by row, in float64.

    Parameters
    ----------
    columns : scaler of the p columns, applied first; its rows have p columns too.
    metric : T (p, r), finite, with r >= 1.

    Raises
    ------
    ParameterError
        The map has another number of rows than there are columns, no column, or numbers that are not finite.
    """

    columns: RowScaler
    metric: Float

    def __post_init__(self) -> None:
        metric = np.array(self.metric, dtype=np.float64, order="C")
        if metric.ndim != 2 or metric.shape[0] != self.columns.n_features or metric.shape[1] == 0:
            raise ParameterError(
                f"a metric of {self.columns.n_features} columns is a matrix of as many rows and at least one column; "
                f"its shape is {metric.shape}"
            )
        if not np.isfinite(metric).all():
            raise ParameterError(
                f"{int((~np.isfinite(metric)).sum())} of {metric.size} numbers of the metric are NaN or infinity"
            )
        metric.setflags(write=False)
        object.__setattr__(self, "metric", metric)

    def __getstate__(self) -> Fields:
        # The packed map is cheap to compute again.
        return {"columns": self.columns, "metric": self.metric}

    def __setstate__(self, state: Fields) -> None:
        self.__dict__.update(state)

    @classmethod
    def unfilled(cls, columns: RowScaler, width: int) -> MetricScaler:
        """A map to `width` columns with the shape of one but without its memory, for plans."""
        scaler = object.__new__(cls)
        object.__setattr__(scaler, "columns", columns)
        object.__setattr__(scaler, "metric", np.broadcast_to(np.zeros(()), (columns.n_features, width)))
        return scaler

    @property
    def n_features(self) -> int:
        """Number of columns p."""
        return self.columns.n_features

    @property
    def width(self) -> int:
        """Number of mapped columns r."""
        return int(self.metric.shape[1])

    @property
    def mean(self) -> Float:
        """(p,) means of the columns, or their medians."""
        return self.columns.mean

    @property
    def invertible(self) -> bool:
        """False: a metric may have fewer columns than the rows."""
        return False

    @property
    def held_bytes(self) -> int:
        """Bytes of the map in a process that maps rows: as it is, and packed for the loops."""
        return 8 * self.metric.size + packed_bytes(self.width, self.n_features)

    @cached_property
    def _inner_products(self) -> PreparedKernel:
        """``x -> x^T T``. The loops of the kernels give a row the same bits in every block; BLAS does not."""
        return Linear().prepare(np.ascontiguousarray(self.metric.T))

    def project(self, Z: AnyArray, dtype: DTypeLike) -> AnyArray:
        """``Z T`` (b, r) of `dtype`, for scaled columns Z (b, p)."""
        return self._mapped(Z, lambda rows: np.ascontiguousarray(rows, dtype=np.float64), dtype)

    def apply(self, X: AnyArray, dtype: DTypeLike) -> AnyArray:
        """Mapped rows (b, r), a new C-contiguous array of `dtype`.

        Raises
        ------
        ShapeError
            X has another number of columns.
        """
        return self._mapped(X, lambda rows: self.columns.apply(rows, np.float64), dtype)

    def _mapped(self, X: AnyArray, scaled: Callable[[AnyArray], AnyArray], dtype: DTypeLike) -> AnyArray:
        out = np.empty((len(X), self.width), dtype=dtype)
        step = max(1, _PIECE_BYTES // (8 * max(self.n_features, self.width)))
        # Overflow gives infinity, which the table's range check reports with its row.
        with np.errstate(over="ignore", invalid="ignore"):
            for first in range(0, len(X), step):
                rows = slice(first, first + step)
                out[rows] = self._inner_products.block(scaled(X[rows]))
        return out

    def unscaled(self, Z: AnyArray) -> Float:
        """Rows in the units of the columns, from scaled columns Z (b, p), which the metric has not mapped yet."""
        return self.columns.unscaled(Z)

    def of_columns(self, columns: list[int]) -> MetricScaler:
        """The scaler of the same columns in another order; the map gives the same rows."""
        return MetricScaler(self.columns.of_columns(columns), self.metric[columns])

    def to_config(self) -> dict[str, Any]:
        """The numbers of the columns' scaler, and the digest of the map."""
        return {**self.columns.to_config(), "metric": array_digest(self.metric)}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MetricScaler)
            and self.columns == other.columns
            and np.array_equal(self.metric, other.metric)
        )

    def __hash__(self) -> int:
        return hash((self.columns, self.metric.tobytes()))


def scales_columns(metric: Float) -> bool:
    """Whether each column of T (p, r) scales one feature and combines none."""
    return bool((np.count_nonzero(metric, axis=0) <= 1).all())


def mapped_names(names: Sequence[str], metric: Float | None) -> list[str]:
    """Names of the columns that a kernel sees: those of the features, or of the directions that combine them.

    Parameters
    ----------
    names : of the p features.
    metric : T (p, r); None for none.
    """
    if metric is None:
        return list(names)
    return [
        names[int(np.argmax(column != 0.0))] if np.count_nonzero(column) == 1 else f"direction {index + 1}"
        for index, column in enumerate(metric.T)
    ]
