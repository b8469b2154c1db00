"""The contract of every reduction: any way to cut the rows is one block; arguments are left alone."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from predictives import Classes, Normal, Rates
from problems import FLOAT64, Float, basis_of, blocks, pool_columns
from strategies import cuts, few_examples, rows, seeds

from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian, Kernel, Laplacian, Polynomial, Sigmoid, per_feature
from streamkernel.reductions import (
    Both,
    Collect,
    Gather,
    Moments,
    Predictions,
    Reduction,
    Reweighted,
    Sample,
    State,
    View,
    WithoutHeldOut,
)
from streamkernel.reductions.boosting import BoostingStep, Members
from streamkernel.reductions.cluster_means import ClusterMeans
from streamkernel.reductions.clusters import Clusters
from streamkernel.reductions.likelihoods import (
    Bernoulli,
    GradientStep,
    Latent,
    Likelihood,
    NewtonStart,
    NewtonStep,
    Softmax,
)
from streamkernel.reductions.margins import (
    ActiveSetStep,
    EpsilonInsensitive,
    Huber,
    InteriorPath,
    InteriorPointStep,
    LagrangianStep,
    Line,
    OneClass,
    Pinball,
    PricedFunction,
    PriceRows,
    SmoothStep,
    SquaredEpsilonInsensitive,
    Target,
    Violators,
)
from streamkernel.reductions.mean_features import ClassFeatures, MeanFeatureSums, ScoreFeatures
from streamkernel.reductions.members.combiners import COMBINERS
from streamkernel.reductions.members.generalised import GeneralisedMembers
from streamkernel.reductions.members.predictions import MemberPredictions
from streamkernel.reductions.members.svm import SVMMembers
from streamkernel.reductions.members.weights import MemberWeights
from streamkernel.reductions.pools import (
    CountRepeats,
    CrossPool,
    DictionaryColumns,
    DictionarySums,
    HeldOut,
    PoolBlocks,
    PoolGram,
    PoolRoot,
    ResidualReservoir,
    ResidualSample,
)
from streamkernel.reductions.pools.largest_residuals import LargestResiduals
from streamkernel.reductions.pools.leverage import RidgeLeverage, SampledKernel
from streamkernel.reductions.predictions import QuantilePredictions
from streamkernel.reductions.row_spaces import InSpace, Joint
from streamkernel.reductions.scaling import Scaling
from streamkernel.reductions.scores import (
    ClassificationScores,
    CountDecisions,
    CountScores,
    FoldScores,
    GaussianScores,
    HeldOutErrors,
    LabelScores,
    OneClassScores,
    ProbabilityScores,
    QuantileScores,
    RegressionScores,
    StagedScores,
)
from streamkernel.reductions.sums import (
    BlockNoise,
    ColumnSquares,
    ConstantNoise,
    CrossDisagreements,
    CrossGram,
    CrossProducts,
    DiagonalNoise,
    EachFold,
    EvidenceGradient,
    FeatureGram,
    FeatureMap,
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

X64 = np.ndarray[Any, Any]
Make = Callable[[X64, Float, list[int]], Reduction[Any]]


def _kernel(X: X64) -> Kernel:
    spread = float(np.abs(X).max()) or 1.0
    return Gaussian(spread)


def _features(X: X64, chosen: list[int]) -> Features:
    return Features.of_basis(basis_of(X, chosen, _kernel(X)))


def _joint(X: X64, Y: Float) -> Joint:
    return Joint(Scaling(None, X.dtype, X.shape[1]), np.zeros(Y.shape[1]), np.full(Y.shape[1], 0.5))


def _clusters(X: X64, Y: Float, chosen: list[int]) -> Clusters:
    centres = np.hstack([X[chosen].astype(np.float64), 0.5 * Y[chosen]])
    return Clusters(centres, np.ones(centres.shape[1]), np.dtype(np.float64))


def _predictions(X: X64, Y: Float, chosen: list[int]) -> Predictions:
    coefficients = np.linspace(-1, 1, len(chosen) * Y.shape[1]).reshape(len(chosen), -1)
    return Predictions(basis_of(X, chosen, _kernel(X)), coefficients, np.full(Y.shape[1], 0.25))


def _evidence(X: X64, Y: Float, chosen: list[int], kernel: Kernel, fitc: bool) -> EvidenceGradient:
    n, d = len(chosen), Y.shape[1]
    inverse, u = np.diag(np.linspace(0.2, 0.9, n)), np.linspace(-1, 1, n * d).reshape(n, d)
    return EvidenceGradient(basis_of(X, chosen, kernel), Y.mean(axis=0), np.full(d, 2.0), 1.7, 0.3, inverse, u, fitc)


def _gradients(X: X64, Y: Float, chosen: list[int], kernel: Kernel) -> GradientProducts:
    coefficients = np.linspace(-1, 1, len(chosen) * Y.shape[1]).reshape(len(chosen), -1)
    return GradientProducts(basis_of(X, chosen, kernel), coefficients)


VIEWS = View(), View(of_targets=True)


def _projections(X: X64, Y: Float, chosen: list[int]) -> tuple[FeatureTimes, FeatureTimes]:
    A = np.triu(np.linspace(-1, 1, len(chosen) ** 2).reshape(len(chosen), -1))
    return FeatureTimes.of(_features(X, chosen), A), FeatureTimes.of(_features(Y, chosen), -A)


def _pre_images(X: X64, chosen: list[int]) -> PreImages:
    scores = FeatureTimes.of(_features(X, chosen), np.eye(len(chosen))[:, :2], name="scores")
    T = scores.map_block(RowBlock(0, X[chosen], None))["scores"]
    basis, _ = Basis.empty(Gaussian(2.0), T.shape[1], T.dtype).append(T, np.arange(len(T)))
    return PreImages(None, scores, NormalEquations(basis, np.zeros(X.shape[1])), np.full(X.shape[1], 0.25))


class _OfAnyTargets(Softmax):
    """Three classes, told by the signs of Y."""

    def targets(self, Y: Float | None, start: int) -> Float:
        assert Y is not None
        return np.eye(3)[(Y > 0).sum(axis=1) % 3]


def _step(X: X64, chosen: list[int], likelihood: Likelihood) -> tuple[Features, Likelihood, Latent, Latent, Any]:
    c = likelihood.width
    ends = [Latent(np.linspace(-end, 1, len(chosen) * c).reshape(-1, c), np.full(c, 0.3 * end)) for end in (1, 2)]
    return _features(X, chosen), likelihood, ends[0], ends[1], (1.0, 0.25)


def _sample(X: X64, Y: Float, chosen: list[int]) -> Sample:
    rows = np.sort(np.asarray(chosen, np.int64))
    return Sample(rows, X[rows], Y[rows], np.ones(len(rows)))


def _dictionary(X: X64, Y: Float, chosen: list[int]) -> DictionarySums:
    """Two targets' worth of a model, rows held out, candidates drawn."""
    basis, pool = basis_of(X, chosen[:1], Sigmoid(coef0=-0.5)), basis_of(X, chosen[1:], Sigmoid(coef0=-0.5))
    draw = ResidualReservoir(3, 7, (5,), basis.rows, X.shape[1], X.dtype)
    beta = np.linspace(-1, 1, 2 * Y.shape[1]).reshape(2, -1)
    columns = DictionaryColumns(basis, pool, Y.mean(axis=0))
    return DictionarySums(columns, beta, None, HeldOut(3, (4,), 0.3), draw, np.full(Y.shape[1], 2.0))


def _whitened(X: X64, Y: Float, chosen: list[int]) -> DictionarySums:
    """Indicators of classes, by a model of nothing."""
    columns = replace(pool_columns(X, Y, chosen[:1], chosen[1:], _kernel(X)), constant=True)
    beta = np.zeros((columns.projected, Y.shape[1]))
    return DictionarySums(columns, beta, np.eye(Y.shape[1]), HeldOut(3, (4,), 0.3))


def _staged(X: X64, Y: Float, chosen: list[int], coding: Float | None) -> StagedScores:
    """A constant and a step for each function; classes where there is a coding, else a gamma."""
    n, d = len(chosen), Y.shape[1]
    V = np.triu(np.linspace(-1.1, 1.3, (n + 1) ** 2).reshape(n + 1, -1))
    Z = np.sin(np.arange(1.0, (n + 1) * d + 1)).reshape(n + 1, d)
    basis, rows = basis_of(X, chosen, _kernel(X)), np.asarray(chosen, np.int64)
    gamma = 0.7 if coding is None else None
    return StagedScores(basis, V, Z, np.full(d, 0.1), True, rows, coding, HeldOut(3, (4,), 0.3), gamma)


def _interior_point(features: Features) -> InteriorPointStep:
    zero, step = np.zeros(features.width + 1), np.full(features.width + 1, 0.1)
    paths = tuple(InteriorPath.begin(zero, mu).further(step, 0.3 * mu) for mu in (2.0, 1.0, 0.3))
    losses = Pinball(2.0, 0.3), EpsilonInsensitive(1.0, 0.2), OneClass(0.3)
    return InteriorPointStep(features, losses, (Target(0), Target(0, 0.5, 2.0), None), paths)


def _boosting(X: X64, Y: Any, chosen: list[int], draw: Any) -> BoostingStep:
    classes, n = max(Y.shape[1], 2), len(chosen)
    rng, K = np.random.default_rng(3), 1 if classes == 2 else classes
    members = Members(
        _kernel(X), X[chosen], np.tile(np.arange(n), 3), n * np.arange(1, 4), rng.standard_normal((3 * n, K)),
        rng.standard_normal((3, K)), classes, soft=True,
    )  # fmt: skip
    sizes = (2, 3) if draw == "errors" else (4,)
    two = np.array([0.5, 0.2])
    return BoostingStep(members, two, 0.1 * two, two, 2.0**-20, draw, sizes, 1, 2, X.dtype, counted=(1, 2), valued=True)


def _points(X: X64, chosen: list[int]) -> Float:
    return np.random.default_rng(5).uniform(-0.5, 0.5, (3, _features(X, chosen).width + 1))


def _held_out_errors(X: Any, Y: Any, chosen: Any, folds: Folds | None) -> HeldOutErrors:
    d = Y.shape[1]
    coefficients = np.sin(np.arange(1.0, 2 * d * len(chosen) + 1)).reshape(len(chosen), 2 * d)
    functions = Predictions(basis_of(X, chosen, _kernel(X)), coefficients, np.full(2 * d, 0.1))
    losses = (Pinball(1.0, 0.3),) * d + (Huber(2.0, 0.3),) * d
    return HeldOutErrors(functions, losses, tuple(Target(k) for k in range(d)), folds, classes=False)


def _smooth_step(features: Features) -> SmoothStep:
    line = Line(np.zeros(features.width + 1), np.full(features.width + 1, 0.1))
    losses = (Huber(2.0, 0.3), SquaredEpsilonInsensitive(1.0, 0.2))
    return SmoothStep(features, losses, (Target(0), Target(0)), (line, line), (1.0, 0.5))


def _prices(X: X64, Y: Float, chosen: list[int]) -> PriceRows:
    """Two functions: some points have both a dual variable and a coefficient."""
    numbers = np.sort(np.asarray(chosen, np.int64))
    functions = tuple(
        PricedFunction(
            X[chosen].astype(np.float64),
            np.linspace(-2, 3, len(chosen))[: max(len(chosen) - 1, 1)],
            np.linspace(-1, 1, len(chosen))[:2],
            0.1,
            loss,
            Target(0, 0.1, 1.5),
            numbers[:2],
            numbers[1:],
        )
        for loss in (EpsilonInsensitive(1.0, 0.2), Pinball(2.0, 0.3))
    )
    return PriceRows(_kernel(X), functions, 0.2, 0.1, 0.05, 5, 3, 7, (4,))


REDUCTIONS: dict[str, Make] = {
    "staged scores": lambda X, Y, chosen: _staged(X, Y, chosen, None),
    "staged scores of classes": lambda X, Y, chosen: _staged(X, Y, chosen, np.eye(Y.shape[1])),
    "dictionary": _dictionary,
    "dictionary, whitened": _whitened,
    "dictionary, logistic": lambda X, Y, chosen: replace(_whitened(X, Y, chosen), logistic=True),
    "normal equations": lambda X, Y, chosen: NormalEquations(basis_of(X, chosen, _kernel(X)), Y.mean(axis=0)),
    "normal equations, laplacian": lambda X, Y, chosen: NormalEquations(
        basis_of(X, chosen, Laplacian(2.0)), np.zeros(Y.shape[1]), leading=0
    ),
    "pre-images": lambda X, Y, chosen: _pre_images(X, chosen),
    "fold equations": lambda X, Y, chosen: FoldEquations(
        NormalEquations(basis_of(X, chosen, _kernel(X)), Y.mean(axis=0)), Folds(2)
    ),
    "fold equations, laplacian": lambda X, Y, chosen: FoldEquations(
        NormalEquations(basis_of(X, chosen, Laplacian(2.0)), np.zeros(Y.shape[1]), leading=0), Folds(3)
    ),
    "evidence gradient, vfe": lambda X, Y, chosen: _evidence(X, Y, chosen, _kernel(X) + Laplacian(2.0), False),
    "evidence gradient, fitc": lambda X, Y, chosen: _evidence(X, Y, chosen, per_feature(_kernel(X), X.shape[1]), True),
    "gaussian equations, constant": lambda X, Y, chosen: GaussianEquations(
        basis_of(X, chosen, _kernel(X)), Y.mean(axis=0), ConstantNoise()
    ),
    "gaussian equations, diagonal": lambda X, Y, chosen: GaussianEquations(
        basis_of(X, chosen, _kernel(X)), Y.mean(axis=0), DiagonalNoise(1.3, 0.2)
    ),
    "gradient products": lambda X, Y, chosen: _gradients(X, Y, chosen, _kernel(X)),
    "gradient products, sum and product": lambda X, Y, chosen: replace(
        _gradients(X, Y, chosen, _kernel(X) * Laplacian(2.0) + Polynomial(degree=2)),
        scale=np.arange(1.0, Y.shape[1] + 1.0),
    ),
    "newton start": lambda X, Y, chosen: NewtonStart(_features(X, chosen), _OfAnyTargets(3)),
    "newton step": lambda X, Y, chosen: NewtonStep(*_step(X, chosen, Bernoulli())),
    "newton step, softmax": lambda X, Y, chosen: NewtonStep(*_step(X, chosen, _OfAnyTargets(3))),
    "active set": lambda X, Y, chosen: ActiveSetStep(_features(X, chosen), 0, 3.0, _points(X, chosen)),
    "lagrangian": lambda X, Y, chosen: LagrangianStep(_features(X, chosen), 0, 3.0, 1.9, _points(X, chosen)),
    "interior point": lambda X, Y, chosen: _interior_point(_features(X, chosen)),
    "held-out errors": lambda X, Y, chosen: _held_out_errors(X, Y, chosen, Folds(3)),
    "errors of all rows": lambda X, Y, chosen: _held_out_errors(X, Y, chosen, None),
    "smooth step": lambda X, Y, chosen: _smooth_step(_features(X, chosen)),
    "smooth step with a band": lambda X, Y, chosen: replace(_smooth_step(_features(X, chosen)), band_rows=3),
    "smooth step, features of few rows": lambda X, Y, chosen: replace(
        _smooth_step(_features(X, chosen)),
        losses=(SquaredEpsilonInsensitive(2.0, 1.0), SquaredEpsilonInsensitive(1.0, 1.5)),
        certificate=False,
    ),
    "boosting step, errors": lambda X, Y, chosen: _boosting(X, Y, chosen, "errors"),
    "boosting step, disagreement": lambda X, Y, chosen: _boosting(X, Y, chosen, "disagreement"),
    "prices": lambda X, Y, chosen: _prices(X, Y, chosen),
    "violators": lambda X, Y, chosen: Violators(
        _kernel(X),
        X[chosen],
        np.linspace(-1, 1, len(chosen)),
        0.1,
        EpsilonInsensitive(1.0, 0.2),
        Target(0, 0.1, 1.5),
        np.sort(np.asarray(chosen, np.int64)),
        0.3,
        5,
    ),
    "gradient step": lambda X, Y, chosen: GradientStep.of(*_step(X, chosen, Bernoulli())),
    "gradient step, softmax": lambda X, Y, chosen: GradientStep.of(*_step(X, chosen, _OfAnyTargets(3))),
    "normal targets": lambda X, Y, chosen: NormalTargets(basis_of(X, chosen, _kernel(X)), Y.mean(axis=0)),
    "normal targets, laplacian": lambda X, Y, chosen: NormalTargets(
        basis_of(X, chosen, Laplacian(2.0)), np.zeros(Y.shape[1]), whiten=False
    ),
    "normal product": lambda X, Y, chosen: NormalProduct(basis_of(X, chosen, Laplacian(2.0)), Y[: len(chosen)]),
    "normal targets, each fold": lambda X, Y, chosen: EachFold(
        NormalTargets(basis_of(X, chosen, _kernel(X)), Y.mean(axis=0)), Folds(2)
    ),
    "normal product, each fold": lambda X, Y, chosen: EachFold(
        NormalProduct(basis_of(X, chosen, Laplacian(2.0)), Y[: len(chosen)]), Folds(1)
    ),
    "kernel products": lambda X, Y, chosen: KernelProducts(_kernel(X), open_table(X), Y),
    "cross products": lambda X, Y, chosen: CrossProducts(_kernel(X), X[chosen], Y, 0),
    "moments": lambda X, Y, chosen: Moments(X.shape[1], Y.shape[1]),
    "count repeats": lambda X, Y, chosen: CountRepeats(X.shape[1], Y.shape[1], 3),
    "both": lambda X, Y, chosen: Both(Moments(X.shape[1], Y.shape[1]), CountRepeats(X.shape[1], Y.shape[1])),
    "weighed": lambda X, Y, chosen: Reweighted(NormalEquations(basis_of(X, chosen, _kernel(X)), Y.mean(axis=0)), 0.3),
    "without held-out rows": lambda X, Y, chosen: WithoutHeldOut(
        NormalEquations(basis_of(X, chosen, _kernel(X)), Y.mean(axis=0)), Folds(4)
    ),
    "gather": lambda X, Y, chosen: Gather(np.unique(chosen), X.shape[1], Y.shape[1], X.dtype),
    "look": lambda X, Y, chosen: ResidualSample(basis_of(X, chosen[:1], _kernel(X)), 3, 5, 7, (3, 1), Y.shape[1]),
    "look, scored by some folds": lambda X, Y, chosen: ResidualSample(
        basis_of(X, chosen[:1], _kernel(X)), 3, 5, 7, (3, 1), Y.shape[1], Folds(4)
    ),
    "look, all rows": lambda X, Y, chosen: ResidualSample(
        basis_of(X, [], Polynomial(degree=2)), 99, 99, 7, (3,), Y.shape[1]
    ),
    "pool": lambda X, Y, chosen: PoolGram(pool_columns(X, Y, chosen[:1], chosen[1:], _kernel(X))),
    "pool without basis": lambda X, Y, chosen: PoolGram(pool_columns(X, Y, [], chosen, _kernel(X))),
    "pool, single precision": lambda X, Y, chosen: PoolGram(
        pool_columns(X, Y, chosen[:1], chosen[1:], _kernel(X), np.dtype(np.float32))
    ),
    "pool, by blocks": lambda X, Y, chosen: PoolBlocks(pool_columns(X, Y, chosen[:1], chosen[1:], _kernel(X))),
    "pool, by blocks without basis": lambda X, Y, chosen: PoolBlocks(pool_columns(X, Y, [], chosen, _kernel(X))),
    "pool root": lambda X, Y, chosen: PoolRoot(pool_columns(X, Y, chosen[:1], chosen[1:], _kernel(X))),
    "pool root, centred": lambda X, Y, chosen: PoolRoot(
        replace(pool_columns(X, Y, chosen[:1], chosen[1:], _kernel(X)), constant=True)
    ),
    "largest residuals": lambda X, Y, chosen: LargestResiduals(basis_of(X, chosen[:1], _kernel(X)), 3),
    "leverage": lambda X, Y, chosen: RidgeLeverage(
        SampledKernel(basis_of(X, chosen, _kernel(X)), np.ones(len(chosen)), 0.3), 3, 7, (11, 1), 0.5
    ),
    "clusters": lambda X, Y, chosen: Clusters(X[chosen].astype(np.float64), np.full(X.shape[1], 0.5), X.dtype),
    "clusters of classes": lambda X, Y, chosen: Clusters(
        X[chosen].astype(np.float64), np.full(X.shape[1], 0.5), X.dtype, np.arange(len(chosen)) % Y.shape[1]
    ),
    "clusters in a space": lambda X, Y, chosen: InSpace(_joint(X, Y), _clusters(X, Y, chosen)),
    "means of clusters": lambda X, Y, chosen: ClusterMeans(_joint(X, Y), _clusters(X, Y, chosen), X[chosen], Y[chosen]),
    "features of classes": lambda X, Y, chosen: MeanFeatureSums(
        ClassFeatures(Scaling(None, X.dtype, X.shape[1]), _features(X, chosen), Y.shape[1])
    ),
    "score features": lambda X, Y, chosen: MeanFeatureSums(
        ScoreFeatures(
            Scaling(None, X.dtype, X.shape[1]),
            _features(X, chosen),
            np.full((len(chosen), Y.shape[1]), 1e-3),
            np.full(Y.shape[1], 0.5),
            2.0,
        )
    ),
    "cross pool": lambda X, Y, chosen: CrossPool(
        (
            pool_columns(X, None, chosen[:1], chosen[1:], _kernel(X)),
            pool_columns(Y, None, chosen[:1], chosen[1:], _kernel(Y)),
        ),
        VIEWS,
    ),
    "cross gram": lambda X, Y, chosen: CrossGram((_features(X, chosen), _features(Y, chosen)), VIEWS),
    "cross disagreements": lambda X, Y, chosen: CrossDisagreements(
        _projections(X, Y, chosen), VIEWS, 0.4, np.asarray(chosen, np.int64), np.arange(1, len(chosen) + 1)
    ),
    "regression scores": lambda X, Y, chosen: RegressionScores(_predictions(X, Y, chosen)),
    "classification scores": lambda X, Y, chosen: ClassificationScores(_predictions(X, Y, chosen)),
    "label scores": lambda X, Y, chosen: LabelScores(_predictions(X, Y, chosen)),
    "scores of folds": lambda X, Y, chosen: FoldScores(
        (RegressionScores(_predictions(X, Y, chosen)), ClassificationScores(_predictions(X, Y, chosen))), Folds(2)
    ),
    "gaussian scores": lambda X, Y, chosen: GaussianScores(Normal(Y.shape[1])),
    "probability scores": lambda X, Y, chosen: ProbabilityScores(Classes(Y.shape[1])),
    "quantile scores": lambda X, Y, chosen: QuantileScores(
        QuantilePredictions(_predictions(X, Y, chosen), tuple(np.linspace(0.2, 0.9, Y.shape[1]).tolist()))
    ),
    "one class scores": lambda X, Y, chosen: OneClassScores(_predictions(X, Y[:, :1], chosen)),
    "decision values": lambda X, Y, chosen: CountDecisions(_predictions(X, Y[:, :1], chosen), 0.3),
    "count scores": lambda X, Y, chosen: CountScores(Rates(Y.shape[1])),
    # Members of one row: what is cut elsewhere are other members.
    "member predictions": lambda X, Y, chosen: MemberPredictions(
        _kernel(X), X[chosen], Y.mean(axis=0), BlockNoise(1.3, 0.2, 1), COMBINERS["rbcm"]
    ),
    "member predictions, shared rows": lambda X, Y, chosen: MemberPredictions(
        _kernel(X), X, Y.mean(axis=0), BlockNoise(1.3, 0.2, 1), COMBINERS["grbcm"], 0, _sample(X, Y, chosen)
    ),
    "member weights": lambda X, Y, chosen: MemberWeights(
        GaussianEquations(basis_of(X, chosen, _kernel(X)), Y.mean(axis=0), BlockNoise(1.3, 0.2, 1)), len(X)
    ),
    "generalised members": lambda X, Y, chosen: GeneralisedMembers(
        basis_of(X, chosen, _kernel(X)), Bernoulli(), 1.3, np.array([0.2]), BlockNoise(1.3, 0.2, 1)
    ),
    "svm members": lambda X, Y, chosen: SVMMembers(
        basis_of(X, chosen, _kernel(X)), 1.3, 0.7, 1.0, 0.3, BlockNoise(1.3, 0.2, 1)
    ),
    "feature gram": lambda X, Y, chosen: FeatureGram(_features(X, chosen)),
    "feature gram, whitened at the end": lambda X, Y, chosen: FeatureGram(
        Features.of_basis(basis_of(X, chosen, Laplacian(2.0))), whiten_first=False
    ),
    "feature gram of a stored factor": lambda X, Y, chosen: FeatureGram(Features(None, X.shape[1])),
    "feature transposed": lambda X, Y, chosen: FeatureTransposed(_features(X, chosen), Y, 0),
    "column squares": lambda X, Y, chosen: ColumnSquares(X.shape[1]),
    "collected predictions": lambda X, Y, chosen: Collect(_predictions(X, Y, chosen), "prediction", len(X)),
    "collected features": lambda X, Y, chosen: Collect(FeatureMap(_features(X, chosen)), "G", len(X)),
    "collected products": lambda X, Y, chosen: Collect(
        FeatureTimes.of(_features(X, chosen), np.eye(len(chosen))[:, :2]), "values", len(X)
    ),
}
TOLERANCE = {"pool, single precision": 1e-4}
# By contract the left state holds the rows before the right one's: here that is made use of.
ORDERED = {"gather", "clusters", "count repeats", "both"}
# Their targets must not be negative; must be one column of 0 and 1; their rows have no weights.
COUNTS = {"count scores"}
LABELS = {"dictionary, logistic", "newton step", "gradient step", "generalised members", "svm members"}
UNWEIGHTED = {"member weights"}


@st.composite
def cases(draw: st.DrawFn) -> tuple[X64, Float, Float | None, list[int], tuple[int, ...]]:
    """Rows in float64 with 1 to 3 targets, perhaps weights, some rows as points, and a way to cut them."""
    X = draw(rows(min_rows=4, max_rows=40, dtype=FLOAT64))
    rng = np.random.default_rng(draw(seeds))
    Y = rng.standard_normal((len(X), draw(st.integers(1, 3))))
    weights = rng.uniform(0.1, 3.0, len(X)) if draw(st.booleans()) else None
    # Distinct points: rows may be duplicates, and a basis of duplicates is no basis.
    _, first = np.unique(X, axis=0, return_index=True)
    chosen = rng.permutation(first)[:4].tolist()
    return X, Y, weights, chosen, draw(cuts(len(X)))


def suited(name: str, case: Any) -> Any:
    """The case with targets and weights of the kind that `name` takes."""
    X, Y, *rest = case
    if name in LABELS:
        Y = (Y[:, :1] > 0) * 1.0
    if name in UNWEIGHTED and rest:
        rest[0] = None
    return X, np.abs(Y) if name in COUNTS else Y, *rest


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
        return {"": value}
    if isinstance(value, dict):
        return value
    if isinstance(value, tuple):
        return {str(position): each for position, each in enumerate(value)}
    return {name: getattr(value, name) for name in getattr(type(value), "__dataclass_fields__", {})}


def assert_equal(left: Any, right: Any, tolerance: float = 1e-10) -> None:
    """Results equal up to `tolerance` of their size; a triangular factor by what it is the root of."""
    a, b = _plain(left), _plain(right)
    assert a.keys() == b.keys()
    if "U" in a:
        for root in (a, b):
            root |= {name: root[name].T @ root[name] for name in ("U", "check")}
    if "R_R" in a:
        for root in (a, b):
            G, R, Y = root.pop("G_R"), root.pop("R_R"), root.pop("R_Y")
            root |= {"C": G.T @ G + R.T @ R, "D": R.T @ Y, "B": R.T @ R}
    if "roots" in a:
        for root in (a, b):
            first, second = root.pop("roots")
            root |= {"C": first.T @ first, "D": second.T @ second, "B": first.T @ second}
            root |= dict(zip("ST", root.pop("residuals"), strict=True))
    for name in a:
        if not isinstance(a[name], np.ndarray) and _plain(a[name]):
            assert_equal(a[name], b[name], tolerance)
        elif a[name] is not None:
            one, other = np.asarray(a[name]), np.asarray(b[name])
            size = max(1.0, float(np.abs(one).max(initial=0.0)))
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance * size, err_msg=name)


def _digest(state: State) -> dict[str, bytes]:
    return {name: values.tobytes() for name, values in state.items()}


@pytest.mark.parametrize("name", REDUCTIONS)
@few_examples(0.4)
@given(case=cases(), data=st.data())
def test_any_chunking_is_one_chunk(name: str, case: Any, data: st.DataObject) -> None:
    """In any order and block by block; no argument changes, and equal blocks give equal bits."""
    X, Y, weights, chosen, chunks = suited(name, case)
    reduction, tolerance = REDUCTIONS[name](X, Y, chosen), TOLERANCE.get(name, 1e-10)
    expected = reduction.finalize(reduction.map_block(next(blocks(X, Y, [len(X)], weights))))
    parts = list(blocks(X, Y, chunks, weights))
    before_parts = copy.deepcopy(parts)
    states = [reduction.map_block(block) for block in parts]
    before = [_digest(state) for state in states]

    folded = reduction.map_block(parts[0])
    for block in parts[1:]:
        folded = reduction.fold(folded, block)
    combined = {
        "from the left": reduce(reduction.combine, states),
        "from the right": reduce(lambda right, left: reduction.combine(left, right), states[::-1]),
        "folded": folded,
    }
    if name not in ORDERED:
        combined["shuffled"] = reduce(reduction.combine, data.draw(st.permutations(states)))
    for state in combined.values():
        # A state of one chunk is the argument itself; finalize may use it up.
        assert_equal(reduction.finalize(copy.deepcopy(state)), expected, tolerance)

    assert [_digest(state) for state in states] == before
    assert before == [_digest(reduction.map_block(block)) for block in parts]
    for block, original in zip(parts, before_parts, strict=True):
        np.testing.assert_array_equal(block.X, original.X)
        np.testing.assert_array_equal(block.Y, original.Y)


def _subclasses(kind: type) -> set[type]:
    return {found for child in kind.__subclasses__() for found in (child, *_subclasses(child))}


def test_every_reduction_has_a_row() -> None:
    X = np.random.default_rng(0).standard_normal((9, 2))
    made = {type(make(X, X, [0, 1, 2, 3])) for make in REDUCTIONS.values()}
    ours = {kind for kind in _subclasses(Reduction) if kind.__module__.startswith("streamkernel.reductions.")}
    assert {kind for kind in ours if not inspect.isabstract(kind)} == made


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_plan_knows_the_size_of_a_state(name: str) -> None:
    rng = np.random.default_rng(0)
    X, Y = suited(name, (rng.standard_normal((400, 4)), rng.standard_normal((400, 2))))
    reduction = REDUCTIONS[name](X, Y, list(range(40)))
    state = reduction.map_block(next(blocks(X, Y, [400])))
    held = sum(values.nbytes for values in state.values())
    assert held <= reduction.state_bytes() == reduction.share_bytes(1.0)
    assert 0 <= reduction.share_bytes(0.0) <= reduction.share_bytes(0.5) <= reduction.state_bytes()
    assert reduction.scratch_bytes(400) >= 0
    assert reduction.flops_per_row() > 0
