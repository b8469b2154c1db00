"""Scaled columns, applied on the fly: no scaled copy of the data is ever stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import DTypeLike

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.type_aliases import AnyArray, Float

# Rows scaled at a time: their float64 copy stays in the cache, and memory does not double for float32 tables.
_PIECE_BYTES = 1 << 19


class RowScaler(Protocol):
    """A map of stored rows (b, p) to the rows (b, r) that a kernel sees; each row on its own, with the same bits in
    every block.
    """

    @property
    def n_features(self) -> int:
        """Number of stored columns p."""

    @property
    def width(self) -> int:
        """Number of mapped columns r."""

    @property
    def mean(self) -> Float:
        """(p,) a typical row, in the units of the columns."""

    @property
    def invertible(self) -> bool:
        """Whether `unscaled` gives back every row, up to rounding."""

    def apply(self, X: AnyArray, dtype: DTypeLike) -> AnyArray:
        """Mapped rows (b, r), a new C-contiguous array of `dtype`."""

    def unscaled(self, Z: AnyArray) -> Float:
        """Rows in the units of the columns, (b, p) float64, from scaled columns Z (b, p): rows with these images."""

    def of_columns(self, columns: list[int]) -> RowScaler:
        """The map of some columns, in this order."""

    def to_config(self) -> dict[str, Any]:
        """Plain JSON that determines the map."""


def numbers(values: Float, what: str, p: int | None = None) -> Float:
    """A read-only copy (p,) of a scaler's numbers.

    Raises
    ------
    ParameterError
        They are not finite, or not p.
    """
    copied = np.array(values, dtype=np.float64)
    if copied.ndim != 1 or (p is not None and len(copied) != p):
        shape = "one number per column" if p is None else f"{p} numbers, as it has columns"
        raise ParameterError(f"{what} of a scaler is {shape}; its shape is {copied.shape}")
    if not np.isfinite(copied).all():
        raise ParameterError(f"{what} of a scaler has {int((~np.isfinite(copied)).sum())} numbers that are not finite")
    copied.setflags(write=False)
    return copied


class ColumnScaler(ABC):
    """Base of the scalers that map each column for itself, computed in float64."""

    mean: Float
    # Fewest rows that are mapped at a time; more for a map that costs a call for each column.
    LEAST_ROWS: ClassVar[int] = 1

    @property
    def n_features(self) -> int:
        """Number of columns p."""
        return int(self.mean.size)

    @property
    def width(self) -> int:
        """Number of mapped columns, p."""
        return self.n_features

    def apply(self, X: AnyArray, dtype: DTypeLike) -> AnyArray:
        """Mapped rows (b, p), a new C-contiguous array of `dtype`.

        Raises
        ------
        ShapeError
            X (b, p) has another number of columns.
        """
        p = self.n_features
        if X.ndim != 2 or X.shape[1] != p:
            raise ShapeError(f"the scaler knows {p} columns, the rows have shape {X.shape}; give the same columns")
        out = np.empty(X.shape, dtype=dtype)
        step = max(self.LEAST_ROWS, _PIECE_BYTES // max(1, 8 * p))
        # Overflow gives infinity, which the table's range check reports with its row.
        with np.errstate(over="ignore", invalid="ignore"):
            for first in range(0, X.shape[0], step):
                self._map(X[first : first + step], out[first : first + step])
        return out

    @abstractmethod
    def _map(self, X: AnyArray, out: AnyArray) -> None:
        """Write the mapped rows X (b, p) to `out`."""


@dataclass(frozen=True, eq=False)
class Scaler(ColumnScaler):
    """``x -> (x - mean) / scale``, column by column, computed in float64.

    A constant column has ``scale = 1`` (the code that makes the scaler warns of it).

    Parameters
    ----------
    mean, scale
        (p,) float64; every scale finite and positive.

    Raises
    ------
    ParameterError
        The lengths differ, or a number is not finite, or a scale is not positive.
    """

    mean: Float
    scale: Float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", numbers(self.mean, "the mean"))
        object.__setattr__(self, "scale", numbers(self.scale, "the scale", len(self.mean)))
        if not (self.scale > 0).all():
            raise ParameterError("the scale of a scaler must be positive; use scale 1 for constant columns")

    @property
    def invertible(self) -> bool:
        """True: no two rows have one image."""
        return True

    def _map(self, X: AnyArray, out: AnyArray) -> None:
        # Rows in float32 with an offset of 1e4 lose digits if they are centred in float32 after a cast of the mean.
        # Therefore the subtraction is in float64, and only its result is cast.
        piece = np.subtract(X, self.mean, dtype=np.float64)
        np.divide(piece, self.scale, out=out, casting="same_kind")

    def unscaled(self, Z: AnyArray) -> Float:
        """Rows in the units of the columns, ``Z scale + mean``, (b, p) float64."""
        return Z.astype(np.float64) * self.scale + self.mean

    def of_columns(self, columns: list[int]) -> Scaler:
        """The scaler of some columns, in this order."""
        return Scaler(self.mean[columns], self.scale[columns])

    def to_config(self) -> dict[str, list[float]]:
        """Plain JSON lists; `from_config` gives back the same bits."""
        return {"mean": self.mean.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_config(cls, config: dict[str, list[float]]) -> Scaler:
        """The scaler that `to_config` wrote."""
        return cls(np.array(config["mean"], dtype=np.float64), np.array(config["scale"], dtype=np.float64))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Scaler)
            and np.array_equal(self.mean, other.mean)
            and np.array_equal(self.scale, other.scale)
        )

    def __hash__(self) -> int:
        return hash((self.mean.tobytes(), self.scale.tobytes()))
