"""Sums of one step of Newton's method for smooth losses on whitened features, float64.

With features ``g = [G, 1]`` of a row, coefficients b and a direction d::

    losses_t = sum w loss(y, g^T (b + t d))    gradient = sum w slope g    curvature = sum w curvature g g^T

The derivatives are at the end of the direction, t = 1: if the full step is accepted, the next one needs no other sweep.
ALGORITHMS 8.3 and 8.4.

**Features of few rows.** A row whose loss is 0 from one end of the direction to the other, as a hinge is far outside
the margin, adds nothing to any of these sums. Its values f at both ends tell: ``f = k(x, Z) c`` with ``c = L^-T b``,
which needs no features. Only the other rows are whitened, at n^2 operations each.

With a band, the rows whose losses are nearest to a kink at the end of the direction come with the sums (`band`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.linalg import mirror_upper
from streamkernel.reductions.contract import SentAsFields, State, Sums
from streamkernel.reductions.likelihoods import add_weighted_gram
from streamkernel.reductions.margins.band import Band, BandRows, split_band
from streamkernel.reductions.margins.losses import Smooth
from streamkernel.reductions.margins.step_sums import StepSums, TraceSums, rows_with_weight
from streamkernel.reductions.margins.targets import Target
from streamkernel.reductions.sums.features import Features
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float, Int

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
class SmoothStep(SentAsFields, Sums[StepSums[SmoothSums]]):
    """Accumulate `SmoothSums` of K problems on the same features.

    Parameters
    ----------
    features : Features of n functions.
    losses : K losses.
    targets : K targets.
    lines : K steps.
    lengths : T lengths at which losses are summed.
    band_rows : largest number of rows in the band of a problem; 0 for none.
    certificate : whether the sums of the certificate are wanted, which take the features of all rows.
    """

    features: Features
    losses: tuple[Smooth, ...]
    targets: tuple[Target, ...]
    lines: tuple[Line, ...]
    lengths: tuple[float, ...] = (1.0,)
    band_rows: int = 0
    certificate: bool = True

    @property
    def band(self) -> Band:
        return Band(len(self.losses), self.band_rows)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n, K = self.features.width, len(self.losses)
        own = {"losses": (K, len(self.lengths)), "gradient": (K, n + 1), "curvature": (K, n + 1, n + 1)}
        return own | (TraceSums.shapes(self.features) if self.certificate else {})

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"curvature"})

    def fold(self, state: State, block: RowBlock) -> State:
        X, Y, w = rows_with_weight(block)
        numbers = block.start + np.flatnonzero(block.row_weights)
        targets = np.column_stack([target.of(Y) for target in self.targets])
        weights = np.column_stack([target.weights(Y, w) for target in self.targets])
        if self.certificate or self.features.basis is None:
            some, G, ends = np.arange(len(X)), self.features.of(X), None
        else:
            F = self.features.raw(X)
            some, ends = self._with_loss(X, F, targets, weights)
            G = F if len(some) == len(F) else F[some]
            self.features.whiten(G)
        if self.certificate:
            TraceSums.add(state, self.features, X, G, w)
        curvatures, distances = np.empty((len(G), len(self.losses))), np.empty((len(X), len(self.losses)))
        for k, (loss, line) in enumerate(zip(self.losses, self.lines, strict=True)):
            y, u = targets[some, k], weights[some, k]
            f, start = (G @ b[:-1] + b[-1] for b in (line.end, line.start))
            for position, length in enumerate(self.lengths):
                state["losses"][k, position] += (
                    u @ loss.at(y, f if length == 1.0 else start + length * (f - start)).loss
                )
            at_end = loss.at(y, f)
            slope = u * at_end.slope
            state["gradient"][k, :-1] += slope @ G
            state["gradient"][k, -1] += slope.sum()
            curvatures[:, k] = u * at_end.curvature
            if self.band_rows:
                every = np.empty(len(X)) if ends is None else ends[:, k]
                every[some] = f
                distances[:, k] = np.where(weights[:, k] > 0.0, loss.kink_distance(targets[:, k], every), np.inf)
        self.band.add(state, X, numbers, targets, distances, w)
        add_weighted_gram(G, curvatures, state["curvature"])
        return state

    def _with_loss(self, X: AnyArray, F: Float, targets: Float, weights: Float) -> tuple[Int, Float]:
        """Rows with kernel values F that have a loss somewhere on a direction, and f (b, K) at the ends of all rows."""
        c, constants, rounding = self._kernel_coefficients
        assert self.features.basis is not None
        values = F @ c + constants
        error = rounding * np.sqrt(float(self.features.basis.kernel.diagonal(X).max(initial=0.0)))
        K = len(self.losses)
        inside = np.zeros(len(X), dtype=bool)
        for k, loss in enumerate(self.losses):
            y, f, start, e = targets[:, k], values[:, k], values[:, K + k], error[[k, K + k]].max()
            # Losses are convex and at least 0: one that is 0 at both ends is 0 between them.
            for end in (np.minimum(f, start) - e, np.maximum(f, start) + e):
                inside |= (loss.loss(y, end) != 0.0) & (weights[:, k] > 0.0)
        return np.flatnonzero(inside), values[:, :K]

    @cached_property
    def _kernel_coefficients(self) -> tuple[Float, Float, Float]:
        """c (n, 2 K) and constants (2 K,) of the ends and then of the starts, and the rounding of f where k(x, x) is 1.

        The rounding is that of the product ``k(x, Z) c``, in which large terms may cancel.
        """
        assert self.features.basis is not None
        lines = [line.end for line in self.lines] + [line.start for line in self.lines]
        B = np.array(lines).T
        c = self.features.coefficients(np.ascontiguousarray(B[:-1]))
        basis = self.features.basis
        largest = np.sqrt(float(basis.kernel.diagonal(basis.points).max()))
        return c, B[-1], 4.0 * len(c) * np.finfo(np.float64).eps * largest * np.abs(c).sum(axis=0)

    def combine(self, left: State, right: State) -> State:
        (sums, band), (others, other) = split_band(left), split_band(right)
        return super().combine(sums, others) | self.band.combine(band, other)

    def finalize(self, state: State) -> StepSums[SmoothSums]:
        each = zip(state["losses"], state["gradient"], state["curvature"], self.band.of(state), strict=True)
        problems = (
            SmoothSums(losses, gradient, mirror_upper(curvature), band) for losses, gradient, curvature, band in each
        )
        return StepSums(tuple(problems), TraceSums.of(state) if self.certificate else None)

    def state_bytes(self) -> int:
        # The rows of a band are joined to those of a block, or of another state, before the nearest of them are kept.
        return super().state_bytes() + 2 * self.band.bytes(self.features)

    def scratch_bytes(self, rows: int) -> int:
        n, K = self.features.width, len(self.losses)
        return self.features.scratch_bytes(rows) + 8 * rows * (2 * n + 9 * K + 12) + 16 * 1024 * (n + 1)

    def flops_per_row(self) -> float:
        n, K = self.features.width, len(self.losses)
        own = self.features.raw_flops() + (0.0 if self.features.basis is None else float(n * n))
        return own + float(K * ((n + 1) ** 2 + 6 * n + _LOSS_FLOPS * (len(self.lengths) + 1)))
