"""Standardised columns, applied on the fly: no scaled copy of the data is ever stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.type_aliases import AnyArray, Float

# Rows scaled at a time: their float64 copy stays in the cache, and memory does not double for float32 tables.
_PIECE_BYTES = 1 << 19


@dataclass(frozen=True, eq=False)
class Scaler:
    """``x -> (x - mean) / scale``, column by column, computed in float64.

    A constant column has ``scale = 1`` (the code that makes the scaler warns of it).

    Parameters
    ----------
    mean, scale
        (p,) float64; every scale finite and positive.
    """

    mean: Float
    scale: Float

    def __post_init__(self) -> None:
        mean = np.array(self.mean, dtype=np.float64)
        scale = np.array(self.scale, dtype=np.float64)
        if mean.ndim != 1 or mean.shape != scale.shape:
            raise ParameterError(
                f"a scaler needs mean and scale of one length, got shapes {mean.shape} and {scale.shape}; "
                "give one number per column"
            )
        if not (np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise ParameterError(
                "a scaler's mean must be finite and its scale positive; use scale 1 for constant columns"
            )
        mean.setflags(write=False)
        scale.setflags(write=False)
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "scale", scale)

    @property
    def n_features(self) -> int:
        """Number of columns p."""
        return int(self.mean.size)

    def apply(self, X: AnyArray, dtype: DTypeLike) -> AnyArray:
        """Scaled rows (b, p), a new C-contiguous array of `dtype`.

        Rows in float32 with an offset of 1e4 lose digits if they are centred in float32 after a cast of the mean.
        Therefore the subtraction is in float64, and only its result is cast.
        """
        if X.ndim != 2 or X.shape[1] != self.mean.size:
            raise ShapeError(
                f"the scaler knows {self.mean.size} columns, the rows have shape {X.shape}; give the same columns"
            )
        out = np.empty(X.shape, dtype=dtype)
        step = max(1, _PIECE_BYTES // max(1, 8 * X.shape[1]))
        # Overflow gives infinity, which the table's range check reports with its row.
        with np.errstate(over="ignore", invalid="ignore"):
            for first in range(0, X.shape[0], step):
                piece = np.subtract(X[first : first + step], self.mean, dtype=np.float64)
                np.divide(piece, self.scale, out=out[first : first + step], casting="same_kind")
        return out

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
