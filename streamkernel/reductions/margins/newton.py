"""Sums of one step of Newton's method for smooth losses on whitened features, float64.

With features ``g = [G, 1]`` of a row, coefficients b and a direction d::

    losses_t = sum w loss(y, g^T (b + t d))    gradient = sum w slope g    curvature = sum w curvature g g^T

The derivatives are at the end of the direction, t = 1: if the full step is accepted, the next one needs no other sweep.
ALGORITHMS 8.3 and 8.4.

With a band, the rows whose losses are nearest to a kink at the end of the direction come with the sums (`band`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import mirror_upper
from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.likelihoods import add_weighted_gram
from streamkernel.reductions.margins.band import Band, BandRows, split_band
from streamkernel.reductions.margins.losses import Smooth
from streamkernel.reductions.margins.step_sums import StepSums, TraceSums, rows_with_weight
from streamkernel.reductions.margins.targets import Target
from streamkernel.reductions.sums.features import Features
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float

_LOSS_FLOPS = 40  # time of one value of a loss, in operations


@dataclass(frozen=True)
class Line:
    """Coefficients from one end of a step to the other, (n + 1,) each; the last is the constant."""

    start: Float
    end: Float


@dataclass(frozen=True)
class SmoothSums:
    """Sums of one problem.

    Attributes
    ----------
    losses : (T,) at each length of the step.
    gradient : (n + 1,) at its end.
    curvature : (n + 1, n + 1) at its end.
    band : the rows nearest to a kink at its end; None without any.
    """

    losses: Float
    gradient: Float
    curvature: Float
    band: BandRows | None


@dataclass(frozen=True)
class SmoothStep(Sums[StepSums[SmoothSums]]):
    """Accumulate `SmoothSums` of K problems on the same features.

    Parameters
    ----------
    features : Features of n functions.
    losses : K losses.
    targets : K targets.
    lines : K steps.
    lengths : T lengths at which losses are summed.
    band_rows : largest number of rows in the band of a problem; 0 for none.
    """

    features: Features
    losses: tuple[Smooth, ...]
    targets: tuple[Target, ...]
    lines: tuple[Line, ...]
    lengths: tuple[float, ...] = (1.0,)
    band_rows: int = 0

    @property
    def band(self) -> Band:
        return Band(len(self.losses), self.band_rows)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n, K = self.features.width, len(self.losses)
        own = {"losses": (K, len(self.lengths)), "gradient": (K, n + 1), "curvature": (K, n + 1, n + 1)}
        return own | TraceSums.shapes(self.features)

    def fold(self, state: State, block: RowBlock) -> State:
        X, Y, w = rows_with_weight(block)
        numbers = block.start + np.flatnonzero(block.row_weights)
        G = self.features.of(X)
        TraceSums.add(state, self.features, X, G, w)
        curvatures, targets, distances = (np.empty((len(G), len(self.losses))) for _ in range(3))
        for k, (loss, target, line) in enumerate(zip(self.losses, self.targets, self.lines, strict=True)):
            y = target.of(Y)
            f, start = (G @ b[:-1] + b[-1] for b in (line.end, line.start))
            for position, length in enumerate(self.lengths):
                state["losses"][k, position] += (
                    w @ loss.at(y, f if length == 1.0 else start + length * (f - start)).loss
                )
            at_end = loss.at(y, f)
            slope = w * at_end.slope
            state["gradient"][k, :-1] += slope @ G
            state["gradient"][k, -1] += slope.sum()
            curvatures[:, k] = w * at_end.curvature
            targets[:, k] = y
            if self.band_rows:
                distances[:, k] = loss.kink_distance(y, f)
        self.band.add(state, X, numbers, targets, distances, w)
        add_weighted_gram(G, curvatures, state["curvature"])
        return state

    def combine(self, left: State, right: State) -> State:
        (sums, band), (others, other) = split_band(left), split_band(right)
        return super().combine(sums, others) | self.band.combine(band, other)

    def finalize(self, state: State) -> StepSums[SmoothSums]:
        each = zip(state["losses"], state["gradient"], state["curvature"], self.band.of(state), strict=True)
        problems = (
            SmoothSums(losses, gradient, mirror_upper(curvature), band) for losses, gradient, curvature, band in each
        )
        return StepSums(tuple(problems), TraceSums.of(state))

    def state_bytes(self) -> int:
        # The rows of a band are joined to those of a block, or of another state, before the nearest of them are kept.
        return super().state_bytes() + 2 * self.band.bytes(self.features)

    def scratch_bytes(self, rows: int) -> int:
        n, K = self.features.width, len(self.losses)
        return self.features.scratch_bytes(rows) + 8 * rows * (n + 5 * K + 12) + 16 * 1024 * (n + 1)

    def flops_per_row(self) -> float:
        n, K = self.features.width, len(self.losses)
        own = self.features.raw_flops() + (0.0 if self.features.basis is None else float(n * n))
        return own + float(K * ((n + 1) ** 2 + 6 * n + _LOSS_FLOPS * (len(self.lengths) + 1)))
