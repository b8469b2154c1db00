"""What one sweep of a solver gives: the sums of its problems, and the trace that their features explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from streamkernel.reductions.contract import State
from streamkernel.reductions.sums.features import Features
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float

T = TypeVar("T")


@dataclass(frozen=True)
class TraceSums:
    """Sums of the certificate of a basis, over rows of weight > 0.

    Attributes
    ----------
    squares : (n,) weighted sum of squares of each feature.
    trace : weighted sum of k(x, x); 0 for a stored factor.
    count : number of rows.
    """

    squares: Float
    trace: float
    count: int

    @classmethod
    def shapes(cls, features: Features) -> dict[str, tuple[int, ...]]:
        """Name and shape of each sum."""
        return {"squares": (features.width,), "trace": (2,)}

    @classmethod
    def add(cls, state: State, features: Features, X: AnyArray, G: Float, w: Float) -> None:
        """Add rows X with the features G (b, n) and weights w (b,) > 0: n operations a row, where a step has n^2."""
        state["squares"] += w @ G**2
        basis = features.basis
        state["trace"] += [0.0 if basis is None else w @ basis.kernel.diagonal(X), len(G)]

    @classmethod
    def of(cls, state: State) -> TraceSums:
        trace, count = state["trace"].tolist()
        return cls(state["squares"], trace, int(count))


def rows_with_weight(block: RowBlock) -> tuple[AnyArray, Float, Float]:
    """X, Y and row weights of the rows whose weight is not 0: of no others are features computed.

    Y has no columns where the table has no targets.
    """
    w, Y = block.row_weights, np.empty((len(block), 0)) if block.Y is None else block.Y
    counted = np.flatnonzero(w)
    if len(counted) == len(w):
        return block.X, Y, w
    return block.X[counted], Y[counted], w[counted]


@dataclass(frozen=True)
class StepSums(Generic[T]):
    """Sums of one sweep.

    Attributes
    ----------
    problems : sums of each problem.
    trace : sums of the certificate; None from a sweep that does not compute the features of all rows.
    """

    problems: tuple[T, ...]
    trace: TraceSums | None
