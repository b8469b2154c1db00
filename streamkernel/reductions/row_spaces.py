"""Spaces in which rows are compared: a map of each row, with its targets, to a point.

Sums over clusters of rows need both: points, to find the cluster, and the rows as stored, whose means are wanted.
Therefore these maps take rows as stored, and scale them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkernel.reductions.contract import AnyReduction, Reduction, State
from streamkernel.reductions.scaling import Scaling
from streamkernel.reductions.sums import FeatureTimes, SparseTimes
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float


class RowSpace(ABC):
    """A map of rows to points u (b, q), row by row."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of coordinates q."""

    @abstractmethod
    def of(self, X: AnyArray, Y: Float | None) -> Float:
        """Points (b, q) float64 of stored rows X (b, p) with targets Y (b, d)."""

    @abstractmethod
    def scratch_bytes(self, rows: int) -> int:
        """Bytes that `of` needs, with its result, for so many rows."""

    @abstractmethod
    def flops_per_row(self) -> float:
        """Floating point operations per row."""


@dataclass(frozen=True)
class Joint(RowSpace):
    """``u = (s(x), v (y - c))``: scaled columns, and beside them targets that are numbers.

    Parameters
    ----------
    scaling : scaling s of the columns.
    centre, factors : (d,) c and v of the targets; of length 0 where these take no part.
    """

    scaling: Scaling
    centre: Float
    factors: Float

    @property
    def width(self) -> int:
        return self.scaling.width + len(self.factors)

    def of(self, X: AnyArray, Y: Float | None) -> Float:
        scaled = self.scaling.of(X).astype(np.float64, copy=False)
        if not len(self.factors):
            return scaled
        assert Y is not None
        return np.concatenate([scaled, (Y - self.centre) * self.factors], axis=1)

    def scratch_bytes(self, rows: int) -> int:
        return 8 * rows * (2 * self.scaling.width + 2 * len(self.factors))

    def flops_per_row(self) -> float:
        return 2.0 * self.width


@dataclass(frozen=True)
class Fitted(RowSpace):
    """``u = (s(x) / radius, v (f(x) - c) / s)``: scaled columns, and beside them the values f (d,) of a fit.

    Targets take no part. The mean of the targets of a cluster is then that of rows which were chosen without them, and
    has their noise less; clusters of targets, too, keep the noise apart, and fits to their means are too steep.

    Parameters
    ----------
    scaling : scaling s of the columns.
    functions : the row map of f.
    centre, spread : (d,) c and s, mean and deviation of the targets.
    radius : root of the mean of ``|s(x)|^2``.
    factor : v.
    """

    scaling: Scaling
    functions: FeatureTimes
    centre: Float
    spread: Float
    radius: float
    factor: float

    @property
    def width(self) -> int:
        return self.scaling.width + len(self.spread)

    def of(self, X: AnyArray, Y: Float | None) -> Float:
        scaled = self.scaling.of(X)
        f = self.functions.map_block(RowBlock(0, scaled, None))[self.functions.name]
        fitted = self.factor * (f - self.centre) / self.spread
        return np.concatenate([scaled.astype(np.float64) / self.radius, fitted], axis=1)

    def scratch_bytes(self, rows: int) -> int:
        return 8 * rows * 3 * self.width + self.functions.scratch_bytes(rows)

    def flops_per_row(self) -> float:
        return float(self.functions.flops_per_row() + 4 * self.width)


@dataclass(frozen=True)
class LikelihoodProfiles(RowSpace):
    """The likelihood profile of a row: its loss under each of L random functions f_l (Pavlov et al. 2000).

    ======== ========================================================= ===================================
    loss     profile                                                   targets
    ======== ========================================================= ===================================
    logistic ``log(1 + exp(-f_l(x)))``                                 classes
    hinge    ``max(0, 1 - f_l(x))``                                    classes
    gaussian ``1/2 sum_t ((y_t - c_t) / s_t - f_lt(x))^2``             d numbers, a function f_lt for each
    ======== ========================================================= ===================================

    f_l is the margin of the row's own class. Rows of different classes are never compared, and f and -f are equally
    likely, so that the sign of a class does not matter.

    Parameters
    ----------
    scaling : scaling of the columns.
    functions : the row map of the L functions, or of L d of them, those of a target beside each other: of features, or
        linear ones of sparse rows.
    loss : "logistic", "hinge" or "gaussian".
    centre, spread : (d,) c and s of targets that are numbers.
    """

    scaling: Scaling
    functions: FeatureTimes | SparseTimes
    loss: str
    centre: Float
    spread: Float

    @property
    def width(self) -> int:
        q = int(self.functions.coefficients.shape[1])
        return q // max(1, len(self.spread)) if self.loss == "gaussian" else q

    def of(self, X: AnyArray, Y: Float | None) -> Float:
        block = RowBlock(0, self.scaling.of(X), None)
        f: Float = self.functions.map_block(block)[self.functions.name]
        if self.loss == "logistic":
            return np.logaddexp(0.0, -f)
        if self.loss == "hinge":
            return np.maximum(0.0, 1.0 - f)
        assert Y is not None
        d = len(self.spread)
        total = np.zeros((len(f), self.width))
        for t, target in enumerate(((Y - self.centre) / self.spread).T):
            total += 0.5 * (target[:, None] - f[:, t * self.width : (t + 1) * self.width]) ** 2
        assert f.shape[1] == d * self.width
        return total

    def scratch_bytes(self, rows: int) -> int:
        q = self.functions.coefficients.shape[1]
        return int(8 * rows * (self.scaling.width + 3 * q)) + self.functions.scratch_bytes(rows)

    def flops_per_row(self) -> float:
        return float(self.functions.flops_per_row() + 20.0 * self.functions.coefficients.shape[1])


@dataclass(frozen=True)
class InSpace(Reduction[Any]):
    """The reduction `work` over points in place of rows.

    Parameters
    ----------
    space : map of the rows to points.
    work : reduction whose rows have the points' coordinates as features.
    """

    space: RowSpace
    work: AnyReduction

    def map_block(self, block: RowBlock) -> State:
        return self.work.map_block(replace(block, X=self.space.of(block.X, block.Y)))

    def combine(self, left: State, right: State) -> State:
        return self.work.combine(left, right)

    @property
    def symmetric(self) -> frozenset[str]:
        return self.work.symmetric

    @property
    def lower_bytes(self) -> int:
        return self.work.lower_bytes

    def finalize(self, state: State) -> Any:
        return self.work.finalize(state)

    def state_bytes(self) -> int:
        return self.work.state_bytes()

    def scratch_bytes(self, rows: int) -> int:
        return self.space.scratch_bytes(rows) + self.work.scratch_bytes(rows)

    def flops_per_row(self) -> float:
        return self.space.flops_per_row() + self.work.flops_per_row()
