"""Sums of features times functions of the targets: means of the features, over all rows or those of each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.scaling import Scaling
from streamkernel.reductions.sums.features import Features
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class TargetFunctions:
    """Functions t(y) (b, t) of the targets: indicators of the classes; or 1 and the d standardised numbers.

    Parameters
    ----------
    centre, spread : (d,) of targets that are numbers.
    classes : number of classes; 0 for targets that are numbers, or none.
    """

    centre: Float
    spread: Float
    classes: int = 0

    @property
    def width(self) -> int:
        return self.classes or 1 + len(self.spread)

    def of(self, Y: Float | None, rows: int) -> Float:
        """t(y) of rows with targets Y (b, d)."""
        if self.classes:
            assert Y is not None
            return Y
        ones = np.ones((rows, 1))
        if not len(self.spread):
            return ones
        assert Y is not None
        return np.concatenate([ones, (Y - self.centre) / self.spread], axis=1)


@dataclass(frozen=True)
class FeatureTargetSums(Sums[Float]):
    """``sum_i w_i g_i t(y_i)^T`` (n, t), g the whitened features of a row.

    Parameters
    ----------
    scaling : scaling of the columns, whose rows the features take.
    features : Features of n functions.
    targets : functions t of the targets.
    """

    scaling: Scaling
    features: Features
    targets: TargetFunctions

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"FT": (self.features.width, self.targets.width)}

    def fold(self, state: State, block: RowBlock) -> State:
        T = self.targets.of(block.Y, len(block))
        if block.weights is not None:
            T = T * block.weights[:, None]
        state["FT"] += self.features.raw(self.scaling.of(block.X)).T @ T
        return state

    def finalize(self, state: State) -> Float:
        with single_threaded_blas():
            return self.features.whitened(state["FT"])

    def scratch_bytes(self, rows: int) -> int:
        each = 2 * self.scaling.width + 2 * self.targets.width
        return self.features.scratch_bytes(rows) + 8 * rows * each + self.state_bytes()

    def flops_per_row(self) -> float:
        return float(self.features.raw_flops() + 2 * self.features.width * self.targets.width)
