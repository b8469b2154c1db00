"""Scores of quantiles: pinball loss, coverage, and how many rows had quantiles that crossed.

The share of the pinball loss that is explained, ``d2 = 1 - loss / least``, compares with the best constant of the same
rows for each level (Koenker & Machado 1999; scikit-learn's ``d2_pinball_score``). Its loss follows from a histogram of
the targets: the loss of a constant is piecewise linear, so that weights and sums of the targets in each bin give it
exactly at the ends of bins. The least of these is above the least of all constants by about the square of a bin's
width, 1e-6 of it or less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from streamkernel.reductions.contract import State
from streamkernel.reductions.scores.errors import (
    PredictionScores,
    Predictive,
    counted,
    rows_of,
    share_explained,
    total,
    weight_sums,
)
from streamkernel.reductions.scores.standard_errors import independent_rows, mean_error, measured, share_error
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float

BINS = 4000  # of ``t = z / (1 + |z|)`` in (-1, 1), z a target in units of the fit


class QuantilePredictive(Predictive, Protocol):
    """Quantiles of several levels."""

    @property
    def levels(self) -> tuple[float, ...]: ...

    def unsorted(self, X: AnyArray) -> Float:
        """Values (b, K) before the rearrangement."""
        ...


@dataclass(frozen=True)
class QuantileCalibration:
    """Scores of quantiles against the observed targets.

    Attributes
    ----------
    scalars : those of `rows_of`; ``pinball`` and ``d2``, the means over levels; ``crossed``, the share of rows whose
        values crossed before the rearrangement; for each level q ``below_q``, the share of rows at or below; and for
        each pair of levels q and 1 - q the share of rows between, such as ``coverage90`` for 0.05 and 0.95. Each but
        ``d2`` has its standard error, such as ``pinball_se``.
    levels : (K,) levels q.
    pinball : (K,) mean of ``max(q r, (q - 1) r)`` with r = y - f.
    coverage : (K,) share of rows with y <= f; about q where the quantiles are right.
    """

    scalars: dict[str, float]
    levels: Float
    pinball: Float
    coverage: Float


@dataclass(frozen=True)
class QuantileScores(PredictionScores[QuantileCalibration]):
    """Scores of quantiles of K levels of one target; means by the row weights.

    Parameters
    ----------
    predictions : quantiles of K levels.
    centre, scale : origin and unit of the targets, such as those of the fit, for the bins of `d2`.
    """

    predictions: QuantilePredictive
    centre: float = 0.0
    scale: float = 1.0

    def map_block(self, block: RowBlock) -> State:
        block = counted(block)
        assert block.Y is not None
        y = np.ascontiguousarray(block.Y[:, 0])
        sums = _quantile_sums(y, self.predictions.unsorted(block.X), self._levels, block.weights)
        z = (y - self.centre) / self.scale
        bins = np.minimum((0.5 * BINS * (1.0 + z / (1.0 + np.abs(z)))).astype(np.intp), BINS - 1)
        w = block.row_weights
        return sums | {"targets": np.array([np.bincount(bins, each, minlength=BINS) for each in (w, w * z)])}

    @property
    def _levels(self) -> Float:
        return np.array(self.predictions.levels)

    def finalize(self, state: State) -> QuantileCalibration:
        found = _calibration(state, self._levels)
        weight, rows = rows_of(state, float(state["totals"][0]))
        least = self.scale * _least_losses(state["targets"][0], state["targets"][1], self._levels) / weight
        return replace(found, scalars=found.scalars | {"d2": share_explained(found.pinball, least, rows["rows"])})

    def state_bytes(self) -> int:
        K = len(self.predictions.levels)
        return 8 * (2 * BINS + 3 * K + len(_pairs(self._levels))) + 40


def score_quantiles(y: Float, unsorted: Float, levels: Float, weights: Float | None = None) -> QuantileCalibration:
    """Scores of `QuantileScores` without ``d2``, for targets (b,) and values (b, K) in memory."""
    return _calibration(_quantile_sums(y, unsorted, levels, weights), levels)


def pinball_explained(y: Float, values: Float, levels: Float, weights: Float | None = None) -> float:
    """``d2`` of `QuantileScores`, exact, for targets (b,) and quantiles (b, K) in memory."""
    order = np.argsort(y, kind="stable")
    y, values = y[order], values[order]
    w = np.ones(len(y)) if weights is None else weights[order]
    below = np.cumsum(w)
    # The best constant is the least target that the share q is at or below.
    best = y[np.minimum(np.searchsorted(below, levels * below[-1]), len(y) - 1)]
    losses = [w @ np.maximum(levels * r, (levels - 1.0) * r) for r in (y[:, None] - values, y[:, None] - best)]
    return share_explained(losses[0], losses[1], int(np.count_nonzero(w)))


def _pairs(levels: Float) -> list[tuple[int, int]]:
    """Positions of levels q < 1/2 with those of 1 - q, the widest first."""
    ends = ((i, int(np.argmin(np.abs(levels - (1.0 - level))))) for i, level in enumerate(levels) if level < 0.5)
    return [(i, j) for i, j in ends if abs(levels[i] + levels[j] - 1.0) < 1e-9]


def _quantile_sums(y: Float, unsorted: Float, levels: Float, weights: Float | None = None) -> State:
    r = y[:, None] - np.sort(unsorted, axis=1)
    crossed = (np.diff(unsorted, axis=1) < 0.0).any(axis=1)
    low, high = np.array(_pairs(levels), dtype=np.intp).reshape(-1, 2).T
    loss = np.maximum(levels * r, (levels - 1.0) * r)
    return {
        "pinball": total(loss, weights),
        "pinball_square": total(loss**2, weights),
        "below": total(r <= 0.0, weights),
        "inside": total((r[:, low] >= 0.0) & (r[:, high] <= 0.0), weights),
        "totals": np.array([len(r), crossed.sum() if weights is None else weights @ crossed], dtype=np.float64),
        **weight_sums(weights),
    }


def _least_losses(weights: Float, sums: Float, levels: Float) -> Float:
    """Pinball loss (K,) of the best constants among the ends of the bins; each has a weight and a sum of targets."""
    t = np.linspace(-1.0, 1.0, BINS + 1)[1:-1]
    constants = t / (1.0 - np.abs(t))
    below, sum_below = np.cumsum(weights)[:-1], np.cumsum(sums)[:-1]
    above, sum_above = weights.sum() - below, sums.sum() - sum_below
    over, under = sum_above - constants * above, constants * below - sum_below
    return np.array([float((level * over + (1.0 - level) * under).min()) for level in levels])


def _calibration(state: State, levels: Float) -> QuantileCalibration:
    weight, rows = rows_of(state, float(state["totals"][0]))
    pinball, coverage = state["pinball"] / weight, state["below"] / weight
    m = independent_rows(rows)
    shares = {"crossed": state["totals"][1] / weight}
    shares |= {f"below_{level:g}": share for level, share in zip(levels, coverage, strict=True)}
    for (low, high), inside in zip(_pairs(levels), state["inside"] / weight, strict=True):
        shares[f"coverage{100.0 * (levels[high] - levels[low]):g}"] = inside
    scalars = {**rows, **measured("pinball", pinball, mean_error(pinball, state["pinball_square"] / weight, m))}
    for name, share in shares.items():
        scalars |= measured(name, share, share_error(share, m))
    return QuantileCalibration(scalars, levels, pinball, coverage)
