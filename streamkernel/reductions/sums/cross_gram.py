"""Sums of the whitened features of two views, and the number of rows on which their projections disagree.

With ``G = [G_x, G_y]`` (m, n_x + n_y)::

    H = G^T W G        G^T w        sum_i w_i        sum_i w_i k_v(x_i, x_i)

where v is the view, x or y, and w are the row weights, 1 unless given. These sums give the canonical correlations of
the first t functions of each view, for every t, because whitening is triangular in the order of picking.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import mirror_upper, syrk
from streamkernel.reductions.contract import Reduction, State, Sums
from streamkernel.reductions.sums.feature_maps import FeatureTimes
from streamkernel.reductions.sums.features import Features
from streamkernel.reductions.views import View
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float, Int


@dataclass(frozen=True)
class CrossFeatureSums:
    """Sums over the rows, float64; each view has n functions.

    Attributes
    ----------
    H : (2n, 2n), ``G^T W G``; the first n columns are those of view x
    G1 : (2n,), ``G^T w``
    count : sum of the row weights: the number of rows m without them
    traces : (2,) ``sum_i w_i k_v(x_i, x_i)``
    """

    H: Float
    G1: Float
    count: float
    traces: Float

    @property
    def size(self) -> int:
        """Number of functions n of each view."""
        return len(self.G1) // 2

    def first(self, size: int) -> CrossFeatureSums:
        """The sums of the first `size` functions of each view."""
        kept = np.r_[:size, self.size : self.size + size]
        return CrossFeatureSums(self.H[np.ix_(kept, kept)], self.G1[kept], self.count, self.traces)

    @property
    def squares(self) -> tuple[Float, Float]:
        """(n,) each: the decrease of the residual trace of the view by each function."""
        squares = np.diagonal(self.H).copy()
        return squares[: self.size], squares[self.size :]


@dataclass(frozen=True)
class CrossGram(Sums[CrossFeatureSums]):
    """Accumulate `CrossFeatureSums`.

    Parameters
    ----------
    features : Features of each view, of n functions, with a basis.
    views : the two views.
    """

    features: tuple[Features, Features]
    views: tuple[View, View]

    @property
    def width(self) -> int:
        return sum(each.width for each in self.features)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"H": (self.width,) * 2, "G1": (self.width,), "totals": (3,)}

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"H"})

    def fold(self, state: State, block: RowBlock) -> State:
        # Both views write into one array: to join two arrays would need a copy of all columns.
        G, at, totals = np.empty((len(block), self.width)), 0, []
        for features, view in zip(self.features, self.views, strict=True):
            X = view.of(block.X, block.Y)
            G[:, at : at + features.width] = features.of(X)
            at += features.width
            assert features.basis is not None
            diagonal = features.basis.kernel.diagonal(X)
            totals.append(diagonal.sum() if block.weights is None else block.weights @ diagonal)
        if block.weights is None:
            state["G1"] += G.sum(axis=0)
            totals.append(float(len(G)))
        else:
            state["G1"] += block.weights @ G
            totals.append(block.weights.sum())
            G *= np.sqrt(block.weights)[:, None]
        syrk(G, into=state["H"])
        state["totals"] += totals
        return state

    def finalize(self, state: State) -> CrossFeatureSums:
        totals = state["totals"]
        return CrossFeatureSums(mirror_upper(state["H"]), state["G1"], float(totals[2]), totals[:2].copy())

    def scratch_bytes(self, rows: int) -> int:
        views = sum(each.scratch_bytes(rows) for each in self.features)
        return views + self._of_views(rows) + 8 * rows * self.width

    def _of_views(self, rows: int) -> int:
        """Bytes that one view at a time needs to be taken out of the rows."""
        found = [0]
        for features, view in zip(self.features, self.views, strict=True):
            assert features.basis is not None
            found.append(view.scratch_bytes(rows, features.basis.points.shape[1]))
        return max(found)

    def flops_per_row(self) -> float:
        return sum(each.raw_flops() + each.width**2 for each in self.features) + float(self.width**2)


@dataclass(frozen=True)
class CrossDisagreements(Reduction[Int]):
    """Number of rows outside the basis with ``|f_x(x) - f_y(y)| > gamma``, for each of s pairs of projections.

    Rows of weight 0 are not counted, others once: the bound that takes the number is of independent rows.

    Parameters
    ----------
    projections : row maps of the two views, s columns each.
    views : the two views.
    gamma : threshold of the formula.
    rows : (n,) row numbers of the basis, in the order of picking.
    sizes : (s,) basis size of each pair: its basis is the first so many of `rows`.
    """

    projections: tuple[FeatureTimes, FeatureTimes]
    views: tuple[View, View]
    gamma: float
    rows: Int
    sizes: Int

    def map_block(self, block: RowBlock) -> State:
        first, second = (
            times.map_block(view.block(block))[times.name]
            for times, view in zip(self.projections, self.views, strict=True)
        )
        wrong = np.abs(first - second) > self.gamma
        if block.weights is not None:
            wrong[block.weights == 0.0] = False
        for place in np.flatnonzero((self.rows >= block.start) & (self.rows < block.stop)):
            wrong[self.rows[place] - block.start, self.sizes > place] = False
        return {"wrong": wrong.sum(axis=0, dtype=np.int64)}

    def finalize(self, state: State) -> Int:
        return state["wrong"].astype(np.int64)

    def state_bytes(self) -> int:
        return 8 * len(self.sizes)

    def scratch_bytes(self, rows: int) -> int:
        found = sum(each.scratch_bytes(rows) for each in self.projections) + 9 * rows * len(self.sizes)
        for times, view in zip(self.projections, self.views, strict=True):
            assert times.features.basis is not None
            found += view.scratch_bytes(rows, times.features.basis.points.shape[1])
        return found

    def flops_per_row(self) -> float:
        return sum(each.flops_per_row() for each in self.projections)
