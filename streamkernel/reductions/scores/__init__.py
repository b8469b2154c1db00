"""Scores of predictions against true targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.reductions.scores.counts import CountCalibration, CountScores, score_counts
    from streamkernel.reductions.scores.errors import ClassificationScores, RegressionScores
    from streamkernel.reductions.scores.gaussian import GaussianCalibration, GaussianScores, score_gaussian
    from streamkernel.reductions.scores.labels import LabelScores
    from streamkernel.reductions.scores.margins import (
        HeldOutErrors,
        MarginErrors,
        bin_edges,
        residual_edges,
        value_histogram,
    )
    from streamkernel.reductions.scores.of_folds import FoldScores
    from streamkernel.reductions.scores.one_class import (
        CountDecisions,
        DecisionValues,
        LoweredThreshold,
        OneClassScores,
    )
    from streamkernel.reductions.scores.probabilities import ProbabilityScores, Reliability, score_probabilities
    from streamkernel.reductions.scores.quantiles import (
        QuantileCalibration,
        QuantileScores,
        pinball_explained,
        score_quantiles,
    )
    from streamkernel.reductions.scores.staged import StagedScores, StagedSums
else:
    __getattr__ = on_demand(
        __name__,
        {
            "counts": "CountCalibration CountScores score_counts",
            "errors": "ClassificationScores RegressionScores",
            "gaussian": "GaussianCalibration GaussianScores score_gaussian",
            "labels": "LabelScores",
            "margins": "HeldOutErrors MarginErrors bin_edges residual_edges value_histogram",
            "of_folds": "FoldScores",
            "one_class": "CountDecisions DecisionValues LoweredThreshold OneClassScores",
            "probabilities": "ProbabilityScores Reliability score_probabilities",
            "quantiles": "QuantileCalibration QuantileScores pinball_explained score_quantiles",
            "staged": "StagedScores StagedSums",
        },
    )

__all__ = [
    "ClassificationScores",
    "CountCalibration",
    "CountDecisions",
    "CountScores",
    "DecisionValues",
    "FoldScores",
    "GaussianCalibration",
    "GaussianScores",
    "HeldOutErrors",
    "LabelScores",
    "LoweredThreshold",
    "MarginErrors",
    "OneClassScores",
    "ProbabilityScores",
    "QuantileCalibration",
    "QuantileScores",
    "RegressionScores",
    "Reliability",
    "StagedScores",
    "StagedSums",
    "bin_edges",
    "pinball_explained",
    "residual_edges",
    "score_counts",
    "score_gaussian",
    "score_probabilities",
    "score_quantiles",
    "value_histogram",
]
