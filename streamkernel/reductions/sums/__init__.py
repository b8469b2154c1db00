"""Sums over rows that solvers need: whitened features, normal equations, sums of Gaussian processes, gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.reductions.sums.cross_gram import CrossDisagreements, CrossFeatureSums, CrossGram
    from streamkernel.reductions.sums.each_fold import EachFold, FoldParts
    from streamkernel.reductions.sums.evidence_gradient import EvidenceGradient, EvidenceSlopes
    from streamkernel.reductions.sums.feature_maps import ColumnSquares, FeatureMap, FeatureTimes
    from streamkernel.reductions.sums.features import FeatureGram, Features, FeatureSums, FeatureTransposed
    from streamkernel.reductions.sums.fold_equations import FoldEquations, FoldSums
    from streamkernel.reductions.sums.gaussian_equations import GaussianEquations, GaussianSums
    from streamkernel.reductions.sums.gradient_products import AverageGradientProduct, GradientProducts
    from streamkernel.reductions.sums.kernel_products import CrossProducts, KernelProducts
    from streamkernel.reductions.sums.normal_equations import NormalEquations, RidgeSums
    from streamkernel.reductions.sums.normal_products import NormalProduct, NormalTargets, TargetSums
    from streamkernel.reductions.sums.pre_images import PreImages
    from streamkernel.reductions.sums.row_noise import BlockNoise, ConstantNoise, DiagonalNoise, RowNoise
    from streamkernel.reductions.sums.sparse_times import SparseTimes
else:
    __getattr__ = on_demand(
        __name__,
        {
            "cross_gram": "CrossDisagreements CrossFeatureSums CrossGram",
            "each_fold": "EachFold FoldParts",
            "evidence_gradient": "EvidenceGradient EvidenceSlopes",
            "feature_maps": "ColumnSquares FeatureMap FeatureTimes",
            "features": "FeatureGram Features FeatureSums FeatureTransposed",
            "fold_equations": "FoldEquations FoldSums",
            "gaussian_equations": "GaussianEquations GaussianSums",
            "gradient_products": "AverageGradientProduct GradientProducts",
            "kernel_products": "CrossProducts KernelProducts",
            "normal_equations": "NormalEquations RidgeSums",
            "normal_products": "NormalProduct NormalTargets TargetSums",
            "pre_images": "PreImages",
            "row_noise": "BlockNoise ConstantNoise DiagonalNoise RowNoise",
            "sparse_times": "SparseTimes",
        },
    )

__all__ = [
    "AverageGradientProduct",
    "BlockNoise",
    "ColumnSquares",
    "ConstantNoise",
    "CrossDisagreements",
    "CrossFeatureSums",
    "CrossGram",
    "CrossProducts",
    "DiagonalNoise",
    "EachFold",
    "EvidenceGradient",
    "EvidenceSlopes",
    "FeatureGram",
    "FeatureMap",
    "FeatureSums",
    "FeatureTimes",
    "FeatureTransposed",
    "Features",
    "FoldEquations",
    "FoldParts",
    "FoldSums",
    "GaussianEquations",
    "GaussianSums",
    "GradientProducts",
    "KernelProducts",
    "NormalEquations",
    "NormalProduct",
    "NormalTargets",
    "PreImages",
    "RidgeSums",
    "RowNoise",
    "SparseTimes",
    "TargetSums",
]
