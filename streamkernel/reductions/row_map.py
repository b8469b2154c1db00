"""Row maps: functions whose values a sweep writes for every row. A `Reduction` sums over rows instead."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.reductions.contract import AnyReduction
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float


class RowMap(ABC):
    """A pure function of row blocks; its values are written for every row, chunk by chunk."""

    @property
    @abstractmethod
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        """Name of each output, with its width (None for a plain vector) and dtype."""

    @property
    def summary(self) -> tuple[str, AnyReduction] | None:
        """Name of an output and a reduction of its stored rows, computed while they are written; None for none."""
        return None

    @abstractmethod
    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        """Values of the block's rows."""

    def fill(self, block: RowBlock, into: dict[str, AnyArray]) -> None:
        """Write the values of `map_block` into given arrays, cast to their dtypes."""
        for name, values in self.map_block(block).items():
            into[name][...] = values

    @abstractmethod
    def scratch_bytes(self, rows: int) -> int:
        """Bytes that `map_block` needs in addition to the block, for `rows` rows."""

    @abstractmethod
    def flops_per_row(self) -> float:
        """Floating point operations per row."""


class ProbabilityMap(RowMap):
    """Base of class probabilities; the second output is the code of the most probable class."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """Number of classes C."""

    @abstractmethod
    def probabilities(self, X: AnyArray) -> Float:
        """Class probabilities (b, C); each row sums to 1."""

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        return {"probability": (self.classes, np.dtype(np.float64)), "prediction": (None, np.dtype(np.int64))}

    def check_values(self, X: AnyArray) -> dict[str, Float]:
        """The values that are compared with the targets."""
        return {"probability": self.probabilities(X)}

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        probabilities = self.probabilities(block.X)
        return {"probability": probabilities, "prediction": probabilities.argmax(axis=1)}


@dataclass(frozen=True)
class Predictions(RowMap):
    """``f(x) = k(x, Z) coefficients + intercept``; with `argmax`, the position of the largest target.

    Parameters
    ----------
    basis : Basis of n functions.
    coefficients : (n, d), intercept : (d,)
    argmax : True to write class codes instead of values.
    flat : True to write a vector where d = 1.
    """

    basis: Basis
    coefficients: Float
    intercept: Float
    argmax: bool = False
    flat: bool = True

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        d = self.coefficients.shape[1]
        if self.argmax:
            return {"prediction": (None, np.dtype(np.int64))}
        return {"prediction": (None if self.flat and d == 1 else d, np.dtype(np.float64))}

    def values(self, X: AnyArray) -> Float:
        """Values of the functions, (b, d) float64."""
        return self.basis.block(X) @ self.coefficients + self.intercept

    def check_values(self, X: AnyArray) -> dict[str, Float]:
        """The values that are compared with the targets."""
        return {"predicted": self.values(X)}

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        values = self.values(block.X)
        if self.argmax:
            return {"prediction": values.argmax(axis=1)}
        return {"prediction": values[:, 0] if self.columns["prediction"][0] is None else values}

    def scratch_bytes(self, rows: int) -> int:
        return int(rows * 8 * (sum(self.basis.points.shape) + 3 * self.coefficients.shape[1]))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float(2 * n * (p + self.coefficients.shape[1]))
