"""Predictions, their scores, and members: a row for each reduction."""

from __future__ import annotations

import numpy as np
from predictives import Classes, Normal, Rates
from problems import Float, basis_of
from reduction_rows.common import X64, Make, features_of, kernel_of

from streamkernel.reductions import Collect, Predictions, Sample
from streamkernel.reductions.likelihoods import Bernoulli
from streamkernel.reductions.members.combiners import COMBINERS
from streamkernel.reductions.members.generalised import GeneralisedMembers
from streamkernel.reductions.members.predictions import MemberPredictions
from streamkernel.reductions.members.svm import SVMMembers
from streamkernel.reductions.members.weights import MemberWeights
from streamkernel.reductions.pools import HeldOut
from streamkernel.reductions.predictions import QuantilePredictions
from streamkernel.reductions.scores import (
    ClassificationScores,
    CountDecisions,
    CountScores,
    FoldScores,
    GaussianScores,
    LabelScores,
    OneClassScores,
    ProbabilityScores,
    QuantileScores,
    RegressionScores,
    StagedScores,
)
from streamkernel.reductions.sums import BlockNoise, FeatureMap, FeatureTimes, GaussianEquations
from streamkernel.table import Folds


def predictions_of(X: X64, Y: Float, chosen: list[int]) -> Predictions:
    coefficients = np.linspace(-1, 1, len(chosen) * Y.shape[1]).reshape(len(chosen), -1)
    return Predictions(basis_of(X, chosen, kernel_of(X)), coefficients, np.full(Y.shape[1], 0.25))


def _sample(X: X64, Y: Float, chosen: list[int]) -> Sample:
    rows = np.sort(np.asarray(chosen, np.int64))
    return Sample(rows, X[rows], Y[rows], np.ones(len(rows)))


def _staged(X: X64, Y: Float, chosen: list[int], coding: Float | None) -> StagedScores:
    """A constant and a step for each function; classes where there is a coding, else a gamma."""
    n, d = len(chosen), Y.shape[1]
    V = np.triu(np.linspace(-1.1, 1.3, (n + 1) ** 2).reshape(n + 1, -1))
    Z = np.sin(np.arange(1.0, (n + 1) * d + 1)).reshape(n + 1, d)
    basis, rows = basis_of(X, chosen, kernel_of(X)), np.asarray(chosen, np.int64)
    gamma = 0.7 if coding is None else None
    return StagedScores(basis, V, Z, np.full(d, 0.1), True, rows, coding, HeldOut(3, (4,), 0.3), gamma)


SCORES: dict[str, Make] = {
    "staged scores": lambda X, Y, chosen: _staged(X, Y, chosen, None),
    "staged scores of classes": lambda X, Y, chosen: _staged(X, Y, chosen, np.eye(Y.shape[1])),
    "regression scores": lambda X, Y, chosen: RegressionScores(predictions_of(X, Y, chosen)),
    "classification scores": lambda X, Y, chosen: ClassificationScores(predictions_of(X, Y, chosen)),
    "label scores": lambda X, Y, chosen: LabelScores(predictions_of(X, Y, chosen)),
    "scores of folds": lambda X, Y, chosen: FoldScores(
        (RegressionScores(predictions_of(X, Y, chosen)), ClassificationScores(predictions_of(X, Y, chosen))), Folds(2)
    ),
    "gaussian scores": lambda X, Y, chosen: GaussianScores(Normal(Y.shape[1])),
    "probability scores": lambda X, Y, chosen: ProbabilityScores(Classes(Y.shape[1])),
    "quantile scores": lambda X, Y, chosen: QuantileScores(
        QuantilePredictions(predictions_of(X, Y, chosen), tuple(np.linspace(0.2, 0.9, Y.shape[1]).tolist()))
    ),
    "one class scores": lambda X, Y, chosen: OneClassScores(predictions_of(X, Y[:, :1], chosen)),
    "decision values": lambda X, Y, chosen: CountDecisions(predictions_of(X, Y[:, :1], chosen), 0.3),
    "count scores": lambda X, Y, chosen: CountScores(Rates(Y.shape[1])),
    # Members of one row: what is cut elsewhere are other members.
    "member predictions": lambda X, Y, chosen: MemberPredictions(
        kernel_of(X), X[chosen], Y.mean(axis=0), BlockNoise(1.3, 0.2, 1), COMBINERS["rbcm"]
    ),
    "member predictions, shared rows": lambda X, Y, chosen: MemberPredictions(
        kernel_of(X), X, Y.mean(axis=0), BlockNoise(1.3, 0.2, 1), COMBINERS["grbcm"], 0, _sample(X, Y, chosen)
    ),
    "member weights": lambda X, Y, chosen: MemberWeights(
        GaussianEquations(basis_of(X, chosen, kernel_of(X)), Y.mean(axis=0), BlockNoise(1.3, 0.2, 1)), len(X)
    ),
    "generalised members": lambda X, Y, chosen: GeneralisedMembers(
        basis_of(X, chosen, kernel_of(X)), Bernoulli(), 1.3, np.array([0.2]), BlockNoise(1.3, 0.2, 1)
    ),
    "svm members": lambda X, Y, chosen: SVMMembers(
        basis_of(X, chosen, kernel_of(X)), 1.3, 0.7, 1.0, 0.3, BlockNoise(1.3, 0.2, 1)
    ),
    "collected predictions": lambda X, Y, chosen: Collect(predictions_of(X, Y, chosen), "prediction", len(X)),
    "collected features": lambda X, Y, chosen: Collect(FeatureMap(features_of(X, chosen)), "G", len(X)),
    "collected products": lambda X, Y, chosen: Collect(
        FeatureTimes.of(features_of(X, chosen), np.eye(len(chosen))[:, :2]), "values", len(X)
    ),
}
