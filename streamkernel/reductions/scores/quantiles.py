"""Scores of quantiles: pinball loss, coverage, and how many rows had quantiles that crossed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streamkernel.reductions.contract import State
from streamkernel.reductions.scores.errors import (
    PredictionScores,
    Predictive,
    counted,
    rows_of,
    total,
    weight_sums,
)
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float


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
    scalars : those of `rows_of`; ``pinball``, the mean over levels; ``crossed``, the share of rows whose values crossed
        before the rearrangement; and for each level q ``below_q``, the share of rows at or below.
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
    """Scores of quantiles of K levels of one target; means by the row weights."""

    predictions: QuantilePredictive

    def map_block(self, block: RowBlock) -> State:
        block = counted(block)
        assert block.Y is not None
        return _quantile_sums(block.Y[:, 0], self.predictions.unsorted(block.X), self._levels, block.weights)

    @property
    def _levels(self) -> Float:
        return np.array(self.predictions.levels)

    def finalize(self, state: State) -> QuantileCalibration:
        return _calibration(state, self._levels)

    def state_bytes(self) -> int:
        return 16 * len(self.predictions.levels) + 40


def score_quantiles(y: Float, unsorted: Float, levels: Float) -> QuantileCalibration:
    """Same scores as `QuantileScores`, for targets (b,) and values (b, K) in memory."""
    return _calibration(_quantile_sums(y, unsorted, levels), levels)


def _quantile_sums(y: Float, unsorted: Float, levels: Float, weights: Float | None = None) -> State:
    r = y[:, None] - np.sort(unsorted, axis=1)
    crossed = (np.diff(unsorted, axis=1) < 0.0).any(axis=1)
    return {
        "pinball": total(np.maximum(levels * r, (levels - 1.0) * r), weights),
        "below": total(r <= 0.0, weights),
        "totals": np.array([len(r), crossed.sum() if weights is None else weights @ crossed], dtype=np.float64),
        **weight_sums(weights),
    }


def _calibration(state: State, levels: Float) -> QuantileCalibration:
    weight, rows = rows_of(state, float(state["totals"][0]))
    pinball, coverage = state["pinball"] / weight, state["below"] / weight
    shares = {f"below_{level:g}": float(share) for level, share in zip(levels, coverage, strict=True)}
    scalars = {**rows, "pinball": float(pinball.mean()), "crossed": float(state["totals"][1] / weight), **shares}
    return QuantileCalibration(scalars, levels, pinball, coverage)
