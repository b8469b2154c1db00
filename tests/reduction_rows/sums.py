"""Sums over rows: equations, products, Grams and features: a row for each reduction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from problems import Float, basis_of
from reduction_rows.common import VIEWS, X64, Make, features_of, kernel_of

from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian, Kernel, Laplacian, Polynomial, per_feature
from streamkernel.reductions import Reweighted, WithoutHeldOut
from streamkernel.reductions.sums import (
    ColumnSquares,
    ConstantNoise,
    CrossDisagreements,
    CrossGram,
    CrossProducts,
    DiagonalNoise,
    EachFold,
    EvidenceGradient,
    FeatureGram,
    Features,
    FeatureTimes,
    FeatureTransposed,
    FoldEquations,
    GaussianEquations,
    GradientProducts,
    KernelProducts,
    NormalEquations,
    NormalProduct,
    NormalTargets,
    PreImages,
)
from streamkernel.table import Folds, RowBlock, open_table


def _evidence(X: X64, Y: Float, chosen: list[int], kernel: Kernel, fitc: bool) -> EvidenceGradient:
    n, d = len(chosen), Y.shape[1]
    inverse, u = np.diag(np.linspace(0.2, 0.9, n)), np.linspace(-1, 1, n * d).reshape(n, d)
    return EvidenceGradient(basis_of(X, chosen, kernel), Y.mean(axis=0), np.full(d, 2.0), 1.7, 0.3, inverse, u, fitc)


def _gradients(X: X64, Y: Float, chosen: list[int], kernel: Kernel) -> GradientProducts:
    coefficients = np.linspace(-1, 1, len(chosen) * Y.shape[1]).reshape(len(chosen), -1)
    return GradientProducts(basis_of(X, chosen, kernel), coefficients)


def _projections(X: X64, Y: Float, chosen: list[int]) -> tuple[FeatureTimes, FeatureTimes]:
    A = np.triu(np.linspace(-1, 1, len(chosen) ** 2).reshape(len(chosen), -1))
    return FeatureTimes.of(features_of(X, chosen), A), FeatureTimes.of(features_of(Y, chosen), -A)


def _pre_images(X: X64, chosen: list[int]) -> PreImages:
    scores = FeatureTimes.of(features_of(X, chosen), np.eye(len(chosen))[:, :2], name="scores")
    T = scores.map_block(RowBlock(0, X[chosen], None))["scores"]
    basis, _ = Basis.empty(Gaussian(2.0), T.shape[1], T.dtype).append(T, np.arange(len(T)))
    return PreImages(None, scores, NormalEquations(basis, np.zeros(X.shape[1])), np.full(X.shape[1], 0.25))


SUMS: dict[str, Make] = {
    "normal equations": lambda X, Y, chosen: NormalEquations(basis_of(X, chosen, kernel_of(X)), Y.mean(axis=0)),
    "normal equations, laplacian": lambda X, Y, chosen: NormalEquations(
        basis_of(X, chosen, Laplacian(2.0)), np.zeros(Y.shape[1]), leading=0
    ),
    "pre-images": lambda X, Y, chosen: _pre_images(X, chosen),
    "fold equations": lambda X, Y, chosen: FoldEquations(
        NormalEquations(basis_of(X, chosen, kernel_of(X)), Y.mean(axis=0)), Folds(2)
    ),
    "fold equations, laplacian": lambda X, Y, chosen: FoldEquations(
        NormalEquations(basis_of(X, chosen, Laplacian(2.0)), np.zeros(Y.shape[1]), leading=0), Folds(3)
    ),
    "evidence gradient, vfe": lambda X, Y, chosen: _evidence(X, Y, chosen, kernel_of(X) + Laplacian(2.0), False),
    "evidence gradient, fitc": lambda X, Y, chosen: _evidence(
        X, Y, chosen, per_feature(kernel_of(X), X.shape[1]), True
    ),
    "gaussian equations, constant": lambda X, Y, chosen: GaussianEquations(
        basis_of(X, chosen, kernel_of(X)), Y.mean(axis=0), ConstantNoise()
    ),
    "gaussian equations, diagonal": lambda X, Y, chosen: GaussianEquations(
        basis_of(X, chosen, kernel_of(X)), Y.mean(axis=0), DiagonalNoise(1.3, 0.2)
    ),
    "gradient products": lambda X, Y, chosen: _gradients(X, Y, chosen, kernel_of(X)),
    "gradient products, sum and product": lambda X, Y, chosen: replace(
        _gradients(X, Y, chosen, kernel_of(X) * Laplacian(2.0) + Polynomial(degree=2)),
        scale=np.arange(1.0, Y.shape[1] + 1.0),
    ),
    "normal targets": lambda X, Y, chosen: NormalTargets(basis_of(X, chosen, kernel_of(X)), Y.mean(axis=0)),
    "normal targets, laplacian": lambda X, Y, chosen: NormalTargets(
        basis_of(X, chosen, Laplacian(2.0)), np.zeros(Y.shape[1]), whiten=False
    ),
    "normal product": lambda X, Y, chosen: NormalProduct(basis_of(X, chosen, Laplacian(2.0)), Y[: len(chosen)]),
    "normal targets, each fold": lambda X, Y, chosen: EachFold(
        NormalTargets(basis_of(X, chosen, kernel_of(X)), Y.mean(axis=0)), Folds(2)
    ),
    "normal product, each fold": lambda X, Y, chosen: EachFold(
        NormalProduct(basis_of(X, chosen, Laplacian(2.0)), Y[: len(chosen)]), Folds(1)
    ),
    "kernel products": lambda X, Y, chosen: KernelProducts(kernel_of(X), open_table(X), Y),
    "cross products": lambda X, Y, chosen: CrossProducts(kernel_of(X), X[chosen], Y, 0),
    "weighed": lambda X, Y, chosen: Reweighted(NormalEquations(basis_of(X, chosen, kernel_of(X)), Y.mean(axis=0)), 0.3),
    "without held-out rows": lambda X, Y, chosen: WithoutHeldOut(
        NormalEquations(basis_of(X, chosen, kernel_of(X)), Y.mean(axis=0)), Folds(4)
    ),
    "cross gram": lambda X, Y, chosen: CrossGram((features_of(X, chosen), features_of(Y, chosen)), VIEWS),
    "cross disagreements": lambda X, Y, chosen: CrossDisagreements(
        _projections(X, Y, chosen), VIEWS, 0.4, np.asarray(chosen, np.int64), np.arange(1, len(chosen) + 1)
    ),
    "feature gram": lambda X, Y, chosen: FeatureGram(features_of(X, chosen)),
    "feature gram of a stored factor": lambda X, Y, chosen: FeatureGram(Features(None, X.shape[1])),
    "feature transposed": lambda X, Y, chosen: FeatureTransposed(features_of(X, chosen), Y, 0),
    "column squares": lambda X, Y, chosen: ColumnSquares(X.shape[1]),
}
