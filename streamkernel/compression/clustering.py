"""A table of the means of clusters: rows that are near each other in some space become one row with their weight.

Clusters have rows of one class only. Centres begin at random rows, and are moved by Lloyd's steps over all rows; then
a last sweep takes the means of the rows, as stored, of each cluster.
"""

from __future__ import annotations

import numpy as np

from streamkernel.compression.compressed import Rows
from streamkernel.engine import Session
from streamkernel.reductions import Sample
from streamkernel.reductions.cluster_means import ClusterMeans, Means
from streamkernel.reductions.clusters import Clusters, LloydStep
from streamkernel.reductions.row_spaces import InSpace, RowSpace
from streamkernel.table import Table
from streamkernel.type_aliases import AnyDType, Float, Int

DOUBLE: AnyDType = np.dtype(np.float64)
STEP, MEANS = "clusters", "means of the clusters"
_STILL = 1e-6  # of the spread of the centres: a smaller move ends the Lloyd steps


def clusters_of(centres: Float, codes: Int | None) -> Clusters:
    """The clusters of these centres in a space, with their classes."""
    return Clusters(centres, np.ones(centres.shape[1]), DOUBLE, codes)


def cluster_rows(
    table: Table,
    space: RowSpace,
    seeds: Sample,
    codes: Int | None,
    sweeps: int,
    session: Session,
    *,
    means_of_rows: bool = True,
) -> Rows:
    """The clusters that grow from seeds, as one row each; those without rows of weight > 0 are left out.

    Parameters
    ----------
    table : rows as stored.
    space : where rows are compared.
    seeds : s rows of the table, the first centres.
    codes : (s,) their classes; None where rows have none.
    sweeps : largest number of Lloyd steps; fewer if the centres stop moving.
    means_of_rows : whether the row of a cluster is the mean of its rows; else its seed.
    """
    centres = space.of(seeds.X, seeds.Y)
    for _ in range(sweeps):
        step: LloydStep = session.sweep(InSpace(space, clusters_of(centres, codes)), table, STEP)
        centres = step.centres
        session.progress.note(f"clusters: mean squared distance {step.square / table.weight:.6g}")
        if step.shift <= _STILL:
            break
    about = seeds.X if means_of_rows else seeds.X[:, :0]  # means that nobody wants are not summed
    work = ClusterMeans(space, clusters_of(centres, codes), about, seeds.Y)
    means: Means = session.sweep(work, table, MEANS)
    kept = np.flatnonzero(means.weights > 0.0)
    if not means_of_rows:
        return Rows(seeds.X[kept], seeds.Y[kept], means.weights[kept], seeds.rows[kept])
    return Rows(means.X[kept], means.Y[kept], means.weights[kept], np.full(len(kept), -1, np.int64))
