"""Weight and mean of each cluster of rows, which become the rows of a compressed table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.clusters import Clusters
from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.row_spaces import RowSpace
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float


@dataclass(frozen=True)
class Means:
    """Result of the sweep.

    Attributes
    ----------
    weights : (n,) sum of the row weights of each cluster.
    X, Y : (n, p), (n, d) weighted means of its rows and targets, float64; those of the seed where it has no rows.
    square : sum of the squared distances of points to their centres, by the row weights.
    """

    weights: Float
    X: Float
    Y: Float
    square: float


@dataclass(frozen=True)
class ClusterMeans(Sums[Means]):
    """Accumulate `Means`: ``W_j = sum w_i``, ``x_j = sum w_i x_i / W_j``, over the rows i whose points belong to j.

    Sums are of differences to a row of the cluster, so that columns far from 0 keep their digits, and a cluster of
    one row gives back that row to the last bit.

    Parameters
    ----------
    space : map of rows to points.
    clusters : centres of the clusters in that space.
    X, Y : (n, p), (n, d) rows, as stored, and targets that the sums are taken about: the seeds of the clusters. Of no
        columns (n, 0) where the means of rows are not wanted.
    """

    space: RowSpace
    clusters: Clusters
    X: AnyArray
    Y: Float

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        (n, p), d = self.X.shape, self.Y.shape[1]
        return {"weights": (n,), "X": (n, p), "Y": (n, d), "square": (1,)}

    def fold(self, state: State, block: RowBlock) -> State:
        clusters, n = self.clusters, len(self.X)
        U = self.space.of(block.X, block.Y) * clusters.weights - clusters.origin
        nearest, _ = clusters.assign(U, block.Y)
        kept = np.flatnonzero((nearest >= 0) & (block.row_weights > 0.0))
        own, w = nearest[kept], block.row_weights[kept]
        apart = U[kept] - clusters.about_origin[own]
        state["square"] += w @ np.einsum("ij,ij->i", apart, apart)
        state["weights"] += np.bincount(own, w, minlength=n)
        # One bincount for each column: np.add.at takes many times as long.
        targets = np.zeros((len(block), 0)) if block.Y is None else block.Y
        for name, rows, about in (("X", block.X, self.X), ("Y", targets, self.Y)):
            for j in range(about.shape[1]):
                apart_j = rows[kept, j].astype(np.float64) - about[own, j]
                state[name][:, j] += np.bincount(own, w * apart_j, minlength=n)
        return state

    def finalize(self, state: State) -> Means:
        W = state["weights"]
        share = np.divide(1.0, W, out=np.zeros_like(W), where=W > 0.0)[:, None]
        return Means(W, self.X + share * state["X"], self.Y + share * state["Y"], float(state["square"][0]))

    def scratch_bytes(self, rows: int) -> int:
        return self.space.scratch_bytes(rows) + int(8 * rows * (1.25 * len(self.X) + 3 * self.space.width + 10))

    def flops_per_row(self) -> float:
        n, q = self.clusters.centres.shape
        return float(self.space.flops_per_row() + 2 * n * (q + 3) + 10 * sum(self.X.shape[1:] + self.Y.shape[1:]))
