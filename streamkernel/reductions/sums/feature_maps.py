"""Row maps of a factor G: G itself, and its product ``G A`` with a small matrix A."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import PANEL_ROWS, single_threaded_blas
from streamkernel.reductions.contract import Reduction, State
from streamkernel.reductions.row_map import RowMap
from streamkernel.reductions.sums.features import Features
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float


@dataclass(frozen=True)
class ColumnSquares(Reduction[Float]):
    """``|g_t|^2`` of each of n columns, (n,) float64."""

    width: int

    def map_block(self, block: RowBlock) -> State:
        squares = np.zeros(self.width)
        exact = block.X.dtype == np.float64
        # Panels of another dtype are converted one at a time: sums in float64 need no second copy of the block.
        scratch = np.empty((0 if exact else min(PANEL_ROWS, len(block.X)), self.width))
        for start in range(0, len(block.X), PANEL_ROWS):
            rows = block.X[start : start + PANEL_ROWS]
            panel = rows if exact else scratch[: len(rows)]
            if not exact:
                panel[...] = rows
            squares += np.einsum("ij,ij->j", panel, panel)
        return {"squares": squares}

    def finalize(self, state: State) -> Float:
        squares: Float = state["squares"]
        return squares

    def state_bytes(self) -> int:
        return 8 * self.width

    def scratch_bytes(self, rows: int) -> int:
        return 8 * min(rows, PANEL_ROWS) * self.width

    def flops_per_row(self) -> float:
        return 2.0 * self.width


_DOUBLE = np.dtype(np.float64)


@dataclass(frozen=True)
class FeatureTimes(RowMap):
    """``G A + offset`` (m, q), computed as ``F C + offset`` with the kernel values F.

    Parameters
    ----------
    features : Features of n functions.
    coefficients : (n, q), ``C = L^-T A``; `of` computes them.
    offset : (q,), added to every row.
    name : name of the output.
    """

    features: Features
    coefficients: Float
    offset: Float
    name: str = "values"

    @classmethod
    def of(cls, features: Features, A: Float, offset: Float | None = None, name: str = "values") -> FeatureTimes:
        """The row map of A (n, q), given in the coordinates of G."""
        with single_threaded_blas():
            C = features.coefficients(np.ascontiguousarray(A, dtype=np.float64))
        return cls(features, C, np.zeros(C.shape[1]) if offset is None else offset, name)

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        return {self.name: (self.coefficients.shape[1], np.dtype(np.float64))}

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        return {self.name: self.features.raw(block.X) @ self.coefficients + self.offset}

    def scratch_bytes(self, rows: int) -> int:
        return int(self.features.scratch_bytes(rows) + 16 * rows * self.coefficients.shape[1])

    def flops_per_row(self) -> float:
        return self.features.raw_flops() + 2.0 * self.coefficients.size


@dataclass(frozen=True)
class FeatureMap(RowMap):
    """G itself, (m, n). When G is written, the sums of squares of its stored columns are its summary.

    Parameters
    ----------
    features : Features of the rows.
    name : name of the output.
    dtype : dtype of the output; all computations are in float64.
    """

    features: Features
    name: str = "G"
    dtype: AnyDType = _DOUBLE

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        return {self.name: (self.features.width, self.dtype)}

    @property
    def summary(self) -> tuple[str, Reduction[Float]]:
        return self.name, ColumnSquares(self.features.width)

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        values = {self.name: np.empty((len(block.X), self.features.width), self.dtype)}
        self.fill(block, values)
        return values

    def fill(self, block: RowBlock, into: dict[str, AnyArray]) -> None:
        self.features.of(block.X, out=into[self.name])

    def scratch_bytes(self, rows: int) -> int:
        return self.features.scratch_bytes(rows)

    def flops_per_row(self) -> float:
        n = self.features.width
        return self.features.raw_flops() + (0.0 if self.features.basis is None else float(n * n))
