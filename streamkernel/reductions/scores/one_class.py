"""Scores of one class, which need no targets: the share of outliers, the mean decision value; and the values of a fit.

A sweep over the rows of a fit counts its decision values f in bins of ``t = f / (unit + |f|)`` in (-1, 1), and beyond
some steps below 0. The steps tell how far the threshold is to be lowered so that at most a share of the rows is below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.row_map import Predictions
from streamkernel.reductions.scores.errors import PredictionScores, Predictive, counted, rows_of, total, weight_sums
from streamkernel.reductions.scores.margins import BINS
from streamkernel.reductions.scores.standard_errors import independent_rows, mean_error, measured, share_error
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float

_COUNT_FLOPS = 200  # time of the bin and the step of a value, in operations


class Deciding(Predictive, Protocol):
    """Decision values of rows, below 0 for outliers."""

    def values(self, X: AnyArray) -> Float:
        """Decision values (b, 1)."""
        ...


@dataclass(frozen=True)
class OneClassScores(PredictionScores[dict[str, float]]):
    """``outliers``, the share of rows with a decision value below 0, and ``decision``, the mean of these values.

    Each has its standard error, ``outliers_se`` and ``decision_se``.
    """

    predictions: Deciding

    def map_block(self, block: RowBlock) -> State:
        block = counted(block)
        f = self.predictions.values(block.X)[:, 0]
        sums = total(np.stack([f < 0.0, f, f * f], axis=1), block.weights)
        return {"totals": np.append(float(len(f)), sums), **weight_sums(block.weights)}

    def finalize(self, state: State) -> dict[str, float]:
        weight, rows = rows_of(state, float(state["totals"][0]))
        m, (outliers, decision, square) = independent_rows(rows), state["totals"][1:] / weight
        return {
            **rows,
            **measured("outliers", outliers, share_error(outliers, m)),
            **measured("decision", decision, mean_error(decision, square, m)),
        }

    def state_bytes(self) -> int:
        return 56


# Steps below the threshold, in its unit: 16 for each power of 10, from well above rounding to the distance of 0.
STEPS = 10.0 ** np.linspace(-9.0, 0.0, 9 * 16 + 1)


@dataclass(frozen=True)
class DecisionValues:
    """Decision values of all rows.

    Attributes
    ----------
    unit : unit of the bins and of `STEPS`.
    weight : sum of the row weights.
    histogram : (BINS,) weight of the rows in each bin.
    below : (1 + steps,) weight of the rows with ``f < 0``, and with ``f < -step``.
    """

    unit: float
    weight: float
    histogram: Float
    below: Float

    def lowered_for(self, share: float) -> LoweredThreshold:
        """The threshold by the least step with at most this share of the weight below it; by the largest if none.

        A row is inside: for the share 1 the objective has the same value for all higher thresholds.

        It goes down by the first step at least: rows on the threshold, of which a solution may have as many as it has
        functions, must not be outside by rounding.
        """
        # A weight that equals the share exactly may be rounded up.
        most, below = share * self.weight * (1.0 + 1e-12), self.below[1:]
        few = np.flatnonzero((below <= most) & (below < self.weight * (1.0 - 1e-12)))
        at = int(few[0]) if len(few) else len(STEPS) - 1
        histogram, moved = self.histogram.copy(), self.below[0] - self.below[1 + at]
        # Rows that are inside by the step are drawn inside. The step is shorter than a bin, unless all goes wrong.
        moved = min(moved, histogram[BINS // 2 - 1])
        histogram[BINS // 2 - 1 : BINS // 2 + 1] += [-moved, moved]
        before = self.unit * float(STEPS[at - 1]) if at else 0.0
        return LoweredThreshold(
            self.unit * float(STEPS[at]), before, float(self.below[1 + at] / self.weight), histogram
        )


@dataclass(frozen=True)
class LoweredThreshold:
    """How far a threshold goes down, and the histogram of the values.

    Attributes
    ----------
    step, before : the step that it goes, and the one before, which leaves too much of the weight below.
    outliers : share of the weight that is then below it.
    histogram : (BINS,) weight of the rows in each bin, those inside by the step on the side of 0 where they are.
    """

    step: float
    before: float
    outliers: float
    histogram: Float


@dataclass(frozen=True)
class CountDecisions(Sums[DecisionValues]):
    """Accumulate `DecisionValues`.

    Parameters
    ----------
    function : Predictions of one function f.
    unit : unit of f, > 0.
    """

    function: Predictions
    unit: float

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"weight": (1,), "histogram": (BINS,), "below": (len(STEPS) + 2,)}

    def fold(self, state: State, block: RowBlock) -> State:
        block = counted(block)
        f, w = self.function.values(block.X)[:, 0] / self.unit, block.row_weights
        bins = np.minimum((0.5 * BINS * (1.0 + f / (1.0 + np.abs(f)))).astype(np.intp), BINS - 1)
        state["histogram"] += np.bincount(bins, w, minlength=BINS)
        passed = np.searchsorted(np.append(0.0, STEPS), -f)  # number of the steps that a value is below
        state["below"] += np.bincount(passed, w, minlength=len(STEPS) + 2)
        state["weight"] += w.sum()
        return state

    def finalize(self, state: State) -> DecisionValues:
        below = np.cumsum(state["below"][::-1])[::-1][1:]
        return DecisionValues(self.unit, float(state["weight"][0]), state["histogram"], below)

    def scratch_bytes(self, rows: int) -> int:
        return self.function.scratch_bytes(rows) + 8 * rows * (int(self.function.basis.points.shape[1]) + 8)

    def flops_per_row(self) -> float:
        return self.function.flops_per_row() + float(_COUNT_FLOPS)
