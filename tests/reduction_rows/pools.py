"""Draws, pools and clusters: a row for each reduction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from problems import Float, basis_of, pool_columns
from reduction_rows.common import VIEWS, X64, Make, features_of, kernel_of

from streamkernel.kernels import Polynomial, Sigmoid
from streamkernel.reductions import Both, Gather, Moments, Sample
from streamkernel.reductions.cluster_means import ClusterMeans
from streamkernel.reductions.clusters import Clusters
from streamkernel.reductions.least_residual import LeastResidual
from streamkernel.reductions.mean_features import ClassFeatures, MeanFeatureSums, ScoreFeatures
from streamkernel.reductions.pools import (
    CellSample,
    CountRepeats,
    CrossPool,
    DictionaryColumns,
    DictionarySums,
    HeldOut,
    Lots,
    LotSizes,
    Origins,
    PoolBlocks,
    PoolGram,
    PoolRoot,
    ResidualReservoir,
    ResidualSample,
)
from streamkernel.reductions.pools.largest_residuals import LargestResiduals
from streamkernel.reductions.pools.leverage import RidgeLeverage, SampledKernel
from streamkernel.reductions.row_spaces import InSpace, Joint
from streamkernel.reductions.scaling import Scaling
from streamkernel.table import Folds
from streamkernel.table.cell_keys import Cells
from streamkernel.type_aliases import Int


def _joint(X: X64, Y: Float) -> Joint:
    return Joint(Scaling(None, X.dtype, X.shape[1]), np.zeros(Y.shape[1]), np.full(Y.shape[1], 0.5))


def _clusters(X: X64, Y: Float, chosen: list[int]) -> Clusters:
    centres = np.hstack([X[chosen].astype(np.float64), 0.5 * Y[chosen]])
    return Clusters(centres, np.ones(centres.shape[1]), np.dtype(np.float64))


def _lot_sizes(X: X64, Y: Float, chosen: Int) -> LotSizes:
    lots = Lots(np.arange(len(chosen)), Origins(), (10, 12))
    return lots.sizes(Sample(chosen, X[chosen], Y[chosen], np.ones(len(chosen))))


def _dictionary(X: X64, Y: Float, chosen: list[int]) -> DictionarySums:
    """Two targets' worth of a model, rows held out, candidates drawn."""
    basis, pool = basis_of(X, chosen[:1], Sigmoid(coef0=-0.5)), basis_of(X, chosen[1:], Sigmoid(coef0=-0.5))
    draw = ResidualReservoir(3, 7, (5,), basis.rows, X.shape[1], X.dtype)
    beta = np.linspace(-1, 1, 2 * Y.shape[1]).reshape(2, -1)
    columns = DictionaryColumns(basis, pool, Y.mean(axis=0))
    return DictionarySums(columns, beta, None, HeldOut(3, (4,), 0.3), draw, np.full(Y.shape[1], 2.0))


def _whitened(X: X64, Y: Float, chosen: list[int]) -> DictionarySums:
    """Indicators of classes, by a model of nothing."""
    columns = replace(pool_columns(X, Y, chosen[:1], chosen[1:], kernel_of(X)), constant=True)
    beta = np.zeros((columns.projected, Y.shape[1]))
    return DictionarySums(columns, beta, np.eye(Y.shape[1]), HeldOut(3, (4,), 0.3))


POOLS: dict[str, Make] = {
    "dictionary": _dictionary,
    "dictionary, whitened": _whitened,
    "dictionary, logistic": lambda X, Y, chosen: replace(_whitened(X, Y, chosen), logistic=True),
    "moments": lambda X, Y, chosen: Moments(X.shape[1], Y.shape[1]),
    "count repeats": lambda X, Y, chosen: CountRepeats(X.shape[1], Y.shape[1], 3),
    "rows of cells": lambda X, Y, chosen: CellSample(
        Cells(np.ones(X.shape[1])), Cells(np.ones(Y.shape[1])), 5, X.shape[1]
    ),
    "rows of lots": lambda X, Y, chosen: _lot_sizes(X, Y, np.unique(chosen)),
    "both": lambda X, Y, chosen: Both(Moments(X.shape[1], Y.shape[1]), CountRepeats(X.shape[1], Y.shape[1])),
    "gather": lambda X, Y, chosen: Gather(np.unique(chosen), X.shape[1], Y.shape[1], X.dtype),
    "look": lambda X, Y, chosen: ResidualSample(basis_of(X, chosen[:1], kernel_of(X)), 3, 5, 7, (3, 1), Y.shape[1]),
    "look, scored by some folds": lambda X, Y, chosen: ResidualSample(
        basis_of(X, chosen[:1], kernel_of(X)), 3, 5, 7, (3, 1), Y.shape[1], Folds(4)
    ),
    "look, all rows": lambda X, Y, chosen: ResidualSample(
        basis_of(X, [], Polynomial(degree=2)), 99, 99, 7, (3,), Y.shape[1]
    ),
    "pool": lambda X, Y, chosen: PoolGram(pool_columns(X, Y, chosen[:1], chosen[1:], kernel_of(X))),
    "pool without basis": lambda X, Y, chosen: PoolGram(pool_columns(X, Y, [], chosen, kernel_of(X))),
    "pool, single precision": lambda X, Y, chosen: PoolGram(
        pool_columns(X, Y, chosen[:1], chosen[1:], kernel_of(X), np.dtype(np.float32))
    ),
    "pool, by blocks": lambda X, Y, chosen: PoolBlocks(pool_columns(X, Y, chosen[:1], chosen[1:], kernel_of(X))),
    "pool, by blocks without basis": lambda X, Y, chosen: PoolBlocks(pool_columns(X, Y, [], chosen, kernel_of(X))),
    "pool root": lambda X, Y, chosen: PoolRoot(pool_columns(X, Y, chosen[:1], chosen[1:], kernel_of(X))),
    "pool root, centred": lambda X, Y, chosen: PoolRoot(
        replace(pool_columns(X, Y, chosen[:1], chosen[1:], kernel_of(X)), constant=True)
    ),
    "largest residuals": lambda X, Y, chosen: LargestResiduals(basis_of(X, chosen[:1], kernel_of(X)), 3),
    "least residual": lambda X, Y, chosen: LeastResidual(basis_of(X, chosen[:2], kernel_of(X))),
    "leverage": lambda X, Y, chosen: RidgeLeverage(
        SampledKernel(basis_of(X, chosen, kernel_of(X)), np.ones(len(chosen)), 0.3), 3, 7, (11, 1), 0.5
    ),
    "clusters": lambda X, Y, chosen: Clusters(X[chosen].astype(np.float64), np.full(X.shape[1], 0.5), X.dtype),
    "clusters of classes": lambda X, Y, chosen: Clusters(
        X[chosen].astype(np.float64), np.full(X.shape[1], 0.5), X.dtype, np.arange(len(chosen)) % Y.shape[1]
    ),
    "clusters in a space": lambda X, Y, chosen: InSpace(_joint(X, Y), _clusters(X, Y, chosen)),
    "means of clusters": lambda X, Y, chosen: ClusterMeans(_joint(X, Y), _clusters(X, Y, chosen), X[chosen], Y[chosen]),
    "features of classes": lambda X, Y, chosen: MeanFeatureSums(
        ClassFeatures(Scaling(None, X.dtype, X.shape[1]), features_of(X, chosen), Y.shape[1])
    ),
    "score features": lambda X, Y, chosen: MeanFeatureSums(
        ScoreFeatures(
            Scaling(None, X.dtype, X.shape[1]),
            features_of(X, chosen),
            np.full((len(chosen), Y.shape[1]), 1e-3),
            np.full(Y.shape[1], 0.5),
            2.0,
        )
    ),
    "cross pool": lambda X, Y, chosen: CrossPool(
        (
            pool_columns(X, None, chosen[:1], chosen[1:], kernel_of(X)),
            pool_columns(Y, None, chosen[:1], chosen[1:], kernel_of(Y)),
        ),
        VIEWS,
    ),
}
