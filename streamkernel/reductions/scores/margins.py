"""Errors of several solutions on a validation fold, and histograms of their values there, from one sweep.

Each row of the fold is predicted by functions that were fitted without it. The histograms need no range before the
sweep. Those of classes have equal bins of ``t = f / (1 + |f|)`` in (-1, 1); the end of a bin at ``f = 0`` separates the
classes of two. Those of numbers count residuals ``r = y - f`` in equal bins of ``arsinh(r / unit)`` with a tiny unit:
each bin is about a fortieth of r wide, whatever the size of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.margins import Loss, PairTarget, Target
from streamkernel.reductions.predictions import pair_scores
from streamkernel.reductions.row_map import Predictions
from streamkernel.table import Folds, RowBlock
from streamkernel.type_aliases import Bool, Float

BINS = 400
# Bins of residuals, 2.5 % wide each, from 1e-9 to 1e6 in units of a solver, in which targets have the deviation 1.
RESIDUAL_BINS, _RESIDUAL_UNIT, _RESIDUAL_END = 2880, 1e-9, 36.0
_LOSS_FLOPS = 60  # time of a loss and its bin, in operations


def bin_edges() -> Float:
    """Ends of the bins in values of f, (BINS + 1,); the outer ones are infinite."""
    t = np.linspace(-1.0, 1.0, BINS + 1)
    with np.errstate(divide="ignore"):
        return np.asarray(t / (1.0 - np.abs(t)))


def value_histogram(f: Float, of_class: Bool, weights: Float) -> Float:
    """Weight (K, 2, BINS) of rows by the bins of their K values f (r, K), those outside the class first."""
    found = np.zeros((f.shape[1], 2, BINS))
    for k in range(f.shape[1]):
        _count_values(of_class[:, k], f[:, k], weights, found[k])
    return found


def _count_values(y: Float | Bool, f: Float, w: Float, into: Float) -> None:
    """Add the weights of rows with values f (b,) to the histograms (2, BINS) of their sides."""
    bins = np.minimum((0.5 * BINS * (1.0 + f / (1.0 + np.abs(f)))).astype(np.intp), BINS - 1)
    places = bins + BINS * (y > 0.5)
    into += np.bincount(places, w, minlength=2 * BINS).reshape(2, BINS)


def residual_edges() -> Float:
    """Ends of the bins of residuals, (RESIDUAL_BINS + 1,)."""
    return np.asarray(_RESIDUAL_UNIT * np.sinh(np.linspace(-_RESIDUAL_END, _RESIDUAL_END, RESIDUAL_BINS + 1)))


@dataclass(frozen=True)
class MarginErrors:
    """Errors of S solutions with K functions each on the rows of a fold.

    Means of no rows are NaN.

    Attributes
    ----------
    errors : (S,) mean error of a row: the share of wrong classes, or `losses`.
    errors_se : (S,) its standard error.
    losses : (S,) mean loss per unit of C, summed over functions.
    rows : number of rows of weight > 0.
    effective : ``(sum w)^2 / sum w^2``
    histogram : (S, K, 2, BINS) weight of the rows in each bin of f, those outside the class first; of numbers
        (S, K, RESIDUAL_BINS), weight of the rows in each bin of r.
    """

    errors: Float
    errors_se: Float
    losses: Float
    rows: int
    effective: float
    histogram: Float


@dataclass(frozen=True)
class HeldOutErrors(Sums[MarginErrors]):
    """Accumulate `MarginErrors`.

    Parameters
    ----------
    functions : Predictions of S K functions, those of a solution together.
    losses, targets : S K losses, K targets.
    folds : folds of the rows, whose table has keys; None to count all rows.
    classes : whether targets are indicators of classes, of which the largest function gives one, or the votes of pairs;
        a single function gives the second of two classes where it is above 0.
    """

    functions: Predictions
    losses: tuple[Loss, ...]
    targets: tuple[Target, ...]
    folds: Folds | None
    classes: bool

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        K = len(self.targets)
        S = len(self.losses) // K
        bins = (2, BINS) if self.classes else (RESIDUAL_BINS,)
        return {"errors": (S, 2), "squares": (S, 2), "losses": (S,), "totals": (3,), "histogram": (S, K, *bins)}

    def fold(self, state: State, block: RowBlock) -> State:
        assert block.Y is not None
        counted = block.row_weights > 0.0
        if self.folds is not None:
            assert block.keys is not None, "folds need a table with keys"
            counted &= self.folds.held_out(block.keys)
        rows = np.flatnonzero(counted)
        if not len(rows):
            return state
        Y, w = block.Y[rows], block.row_weights[rows]
        f = self.functions.values(block.X[rows])
        K = len(self.targets)
        targets, weights = [target.of(Y) for target in self.targets], [target.weights(Y, w) for target in self.targets]
        state["totals"] += [len(rows), w.sum(), w @ w]
        for solution in range(len(self.losses) // K):
            loss = np.zeros(len(rows))
            values = f[:, K * solution : K * (solution + 1)]
            for k, (y, own, each) in enumerate(zip(targets, weights, self.losses[K * solution :], strict=False)):
                # Of one against one, rows of other classes have no part in a function.
                loss += (own > 0.0) * each.loss(y, np.ascontiguousarray(values[:, k])) / each.C
                count = _count_values if self.classes else self._count_residuals
                count(y, values[:, k], own, state["histogram"][solution, k])
            error = self._wrong(values, Y) if self.classes else loss
            state["losses"][solution] += w @ loss
            # Weighted as means are, and as their variances are.
            state["errors"][solution] += [w @ error, (w * w) @ error]
            state["squares"][solution] += [w @ error**2, (w * w) @ error**2]
        return state

    def _wrong(self, values: Float, Y: Float) -> Float:
        """1 for each row (b,) whose class is not that of the functions."""
        if values.shape[1] == 1:
            positive = Y[:, self.targets[0].column] > 0.5
            return np.asarray((values[:, 0] > 0.0) != positive, dtype=np.float64)
        if isinstance(self.targets[0], PairTarget):
            return np.asarray(pair_scores(values, Y.shape[1]).argmax(axis=1) != Y.argmax(axis=1), dtype=np.float64)
        true = Y[:, [target.column for target in self.targets]].argmax(axis=1)
        return np.asarray(values.argmax(axis=1) != true, dtype=np.float64)

    @staticmethod
    def _count_residuals(y: Float, f: Float, w: Float, into: Float) -> None:
        """Add the weights of rows with residuals y - f (b,) to a histogram (RESIDUAL_BINS,)."""
        share = 0.5 + np.arcsinh((y - f) / _RESIDUAL_UNIT) / (2.0 * _RESIDUAL_END)
        bins = np.clip(RESIDUAL_BINS * share, 0, RESIDUAL_BINS - 1).astype(np.intp)
        into += np.bincount(bins, w, minlength=RESIDUAL_BINS)

    def finalize(self, state: State) -> MarginErrors:
        rows, weight, squares = state["totals"].tolist()
        if not rows:
            none = np.full(len(state["losses"]), np.nan)
            return MarginErrors(none, none, none, 0, 0.0, state["histogram"])
        mean = state["errors"][:, 0] / weight
        # sum w^2 (e - mean)^2 / (sum w)^2, the variance of a weighted mean of independent rows
        spread = state["squares"][:, 1] - 2.0 * mean * state["errors"][:, 1] + mean**2 * squares
        effective = weight * (weight / squares)
        correction = effective / max(effective - 1.0, 1.0)
        return MarginErrors(
            errors=mean,
            errors_se=np.sqrt(correction * np.maximum(spread, 0.0)) / weight,
            losses=state["losses"] / weight,
            rows=int(rows),
            effective=effective,
            histogram=state["histogram"],
        )

    def scratch_bytes(self, rows: int) -> int:
        return self.functions.scratch_bytes(rows) + 8 * rows * (int(self.functions.basis.points.shape[1]) + 12)

    def flops_per_row(self) -> float:
        share: float = 1.0 if self.folds is None else self.folds.share
        return float(share * (self.functions.flops_per_row() + _LOSS_FLOPS * len(self.losses)))
