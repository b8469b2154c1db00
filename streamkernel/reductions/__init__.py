"""Reductions: the sums and samples that a sweep accumulates over row blocks. One reduction per file."""

from streamkernel.reductions.both import Both
from streamkernel.reductions.class_probabilities import ClassProbabilities, PoissonPredictions
from streamkernel.reductions.collect import Collect
from streamkernel.reductions.column_squares import ColumnSquares
from streamkernel.reductions.contract import Reduction, State
from streamkernel.reductions.count_scores import CountCalibration, CountScores, score_counts
from streamkernel.reductions.counter import row_uniforms, stream_generator
from streamkernel.reductions.cross_gram import CrossDisagreements, CrossFeatureSums, CrossGram
from streamkernel.reductions.cross_pool import CrossPool, CrossSums
from streamkernel.reductions.dictionary import DictionarySums, Roots
from streamkernel.reductions.dictionary_columns import DictionaryColumns
from streamkernel.reductions.dictionary_rows import HeldOut, ResidualReservoir
from streamkernel.reductions.evidence_gradient import EvidenceGradient, EvidenceSlopes
from streamkernel.reductions.feature_maps import FeatureMap, FeatureTimes
from streamkernel.reductions.features import FeatureGram, Features, FeatureSums, FeatureTransposed
from streamkernel.reductions.gather import Gather, Sample
from streamkernel.reductions.gaussian_equations import GaussianEquations, GaussianSums
from streamkernel.reductions.gaussian_predictions import GaussianPredictions
from streamkernel.reductions.gaussian_scores import GaussianCalibration, GaussianScores, score_gaussian
from streamkernel.reductions.gradient_step import GradientStep, GradientSums
from streamkernel.reductions.inner_products import Gram
from streamkernel.reductions.kernel_products import CrossProducts, KernelProducts
from streamkernel.reductions.latent import (
    FullCovariance,
    KroneckerCovariance,
    LatentCovariance,
    LatentPosterior,
    covariance_of,
)
from streamkernel.reductions.likelihoods import LIKELIHOODS, Bernoulli, Likelihood, Poisson, Softmax, likelihood_of
from streamkernel.reductions.look import Look, LookResult
from streamkernel.reductions.moments import Moments
from streamkernel.reductions.newton import (
    Latent,
    NewtonStart,
    NewtonStep,
    NewtonSums,
    StartSums,
    add_weighted_gram,
)
from streamkernel.reductions.normal_equations import NormalEquations, RidgeSums
from streamkernel.reductions.normal_products import NormalProduct, NormalTargets, TargetSums
from streamkernel.reductions.odds import OddsProbabilities, probabilities_of_indicators
from streamkernel.reductions.pool import PoolColumns, PoolGram, PoolSums
from streamkernel.reductions.pool_root import PoolRoot, RootSums
from streamkernel.reductions.probability_scores import ProbabilityScores, Reliability, score_probabilities
from streamkernel.reductions.repeats import CountRepeats, Origins, Repeats
from streamkernel.reductions.residual_columns import ResidualColumns
from streamkernel.reductions.row_noise import BlockNoise, ConstantNoise, DiagonalNoise, RowNoise
from streamkernel.reductions.rows import Predictions, RowMap
from streamkernel.reductions.scores import ClassificationScores, RegressionScores
from streamkernel.reductions.staged_scores import StagedScores, StagedSums
from streamkernel.reductions.view_times import ViewTimes
from streamkernel.reductions.views import View
from streamkernel.reductions.weighed import Weighed

__all__ = [
    "Gram",
    "LIKELIHOODS",
    "Bernoulli",
    "BlockNoise",
    "Both",
    "ClassProbabilities",
    "ClassificationScores",
    "Collect",
    "ColumnSquares",
    "ConstantNoise",
    "CountCalibration",
    "CountRepeats",
    "CountScores",
    "CrossDisagreements",
    "CrossFeatureSums",
    "CrossGram",
    "CrossPool",
    "CrossProducts",
    "CrossSums",
    "DiagonalNoise",
    "DictionaryColumns",
    "DictionarySums",
    "EvidenceGradient",
    "EvidenceSlopes",
    "FeatureGram",
    "FeatureMap",
    "FeatureSums",
    "FeatureTimes",
    "FeatureTransposed",
    "Features",
    "FullCovariance",
    "Gather",
    "GaussianCalibration",
    "GaussianEquations",
    "GaussianPredictions",
    "GaussianScores",
    "GaussianSums",
    "GradientStep",
    "GradientSums",
    "HeldOut",
    "KernelProducts",
    "KroneckerCovariance",
    "Latent",
    "LatentCovariance",
    "LatentPosterior",
    "Likelihood",
    "Look",
    "LookResult",
    "Moments",
    "NewtonStart",
    "NewtonStep",
    "NewtonSums",
    "NormalEquations",
    "NormalProduct",
    "NormalTargets",
    "OddsProbabilities",
    "Origins",
    "Poisson",
    "PoissonPredictions",
    "PoolColumns",
    "PoolGram",
    "PoolRoot",
    "PoolSums",
    "Predictions",
    "ProbabilityScores",
    "Reduction",
    "RegressionScores",
    "ResidualColumns",
    "ResidualReservoir",
    "Reliability",
    "Repeats",
    "RidgeSums",
    "RootSums",
    "Roots",
    "RowMap",
    "RowNoise",
    "Sample",
    "Softmax",
    "StagedScores",
    "StagedSums",
    "StartSums",
    "State",
    "TargetSums",
    "View",
    "ViewTimes",
    "Weighed",
    "add_weighted_gram",
    "covariance_of",
    "likelihood_of",
    "probabilities_of_indicators",
    "row_uniforms",
    "score_counts",
    "score_gaussian",
    "score_probabilities",
    "stream_generator",
]
