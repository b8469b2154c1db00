"""Predictions beyond one number: means, variances, class probabilities and decisions for every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.reductions.predictions.canonical_variates import BothVariates, ViewTimes
    from streamkernel.reductions.predictions.class_probabilities import (
        ClassProbabilities,
        OddsProbabilities,
        PoissonPredictions,
        probabilities_of_indicators,
    )
    from streamkernel.reductions.predictions.curves import (
        CalibratedProbabilities,
        Curves,
        Isotonic,
        Sigmoids,
        calibrated,
        curves_of,
    )
    from streamkernel.reductions.predictions.decisions import Decisions
    from streamkernel.reductions.predictions.gaussian import GaussianPredictions
    from streamkernel.reductions.predictions.labels import LabelPredictions
    from streamkernel.reductions.predictions.latent import (
        FullCovariance,
        KroneckerCovariance,
        LatentCovariance,
        LatentPosterior,
        covariance_of,
    )
    from streamkernel.reductions.predictions.pairwise import (
        PairwisePredictions,
        PairwiseProbabilities,
        coupled,
        pair_scores,
    )
    from streamkernel.reductions.predictions.quantiles import QuantilePredictions
else:
    __getattr__ = on_demand(
        __name__,
        {
            "curves": "CalibratedProbabilities Curves Isotonic Sigmoids calibrated curves_of",
            "canonical_variates": "BothVariates ViewTimes",
            "class_probabilities": (
                "ClassProbabilities OddsProbabilities PoissonPredictions probabilities_of_indicators"
            ),
            "decisions": "Decisions",
            "gaussian": "GaussianPredictions",
            "labels": "LabelPredictions",
            "latent": "FullCovariance KroneckerCovariance LatentCovariance LatentPosterior covariance_of",
            "pairwise": "PairwisePredictions PairwiseProbabilities coupled pair_scores",
            "quantiles": "QuantilePredictions",
        },
    )

__all__ = [
    "CalibratedProbabilities",
    "ClassProbabilities",
    "Curves",
    "Decisions",
    "FullCovariance",
    "GaussianPredictions",
    "Isotonic",
    "KroneckerCovariance",
    "LabelPredictions",
    "LatentCovariance",
    "LatentPosterior",
    "OddsProbabilities",
    "PoissonPredictions",
    "QuantilePredictions",
    "PairwisePredictions",
    "PairwiseProbabilities",
    "coupled",
    "pair_scores",
    "Sigmoids",
    "BothVariates",
    "ViewTimes",
    "covariance_of",
    "calibrated",
    "curves_of",
    "probabilities_of_indicators",
]
