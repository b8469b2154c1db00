"""The registry of kinds: what can be fitted, saved, loaded and served. All other tables of kinds are derived from it.

A new estimator is a class in `estimators/` and a row here. Its class is imported when somebody asks for it.
"""

from __future__ import annotations

from streamkernel.fits.boosting.boosting import fit_boosting, plan_boosting
from streamkernel.fits.cca.kernel_cca import fit_kernel_cca
from streamkernel.fits.cca.kernel_cca_plan import plan_kernel_cca
from streamkernel.fits.gaussian.gaussian import fit_gaussian, plan_gaussian
from streamkernel.fits.gaussian.gaussian_folds import GAUSSIAN_FOLDS
from streamkernel.fits.gaussian.generalised import check_counts, fit_generalised, plan_generalised
from streamkernel.fits.margins.margins import fit_margins, plan_margins
from streamkernel.fits.margins.one_class import fit_one_class, plan_one_class
from streamkernel.fits.pursuit import fit_pursuit, plan_pursuit
from streamkernel.fits.ridge.ridge import fit_ridge, plan_ridge
from streamkernel.fits.ridge.ridge_folds import RIDGE_FOLDS
from streamkernel.fits.transformer import fit_kernel_pca, fit_nystroem, plan_transformer
from streamkernel.kinds._kind import OF_NUMBERS, OF_PROBABILITIES, Kind, Predictor, Transformer, any_targets
from streamkernel.models.boosting import BoostingModel
from streamkernel.models.gaussian import GaussianModel
from streamkernel.models.generalised import GeneralisedModel
from streamkernel.models.kernel_cca import KernelCCAModel
from streamkernel.models.linear import LinearClassifierModel, LinearRegressorModel
from streamkernel.models.margins import MarginClassifierModel, MarginRegressorModel, OneClassModel, QuantileModel
from streamkernel.models.pursuit import PursuitModel
from streamkernel.models.ridge import RidgeModel
from streamkernel.models.transformers import KernelPCAModel, NystroemModel
from streamkernel.settings.boosting import BoostingSettings
from streamkernel.settings.classes import (
    GeneralisedClassifierSettings,
    PursuitClassifierSettings,
    RidgeClassifierSettings,
)
from streamkernel.settings.gaussian import CommitteeSettings, GaussianSettings
from streamkernel.settings.generalised import GeneralisedSettings
from streamkernel.settings.linear import LinearClassifierSettings, LinearRegressorSettings
from streamkernel.settings.margins import MarginClassifierSettings, MarginRegressorSettings
from streamkernel.settings.one_class import OneClassSettings
from streamkernel.settings.pursuit import PursuitSettings
from streamkernel.settings.quantile import QuantileSettings
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.settings.transformers import KernelCCASettings, KernelPCASettings, TransformerSettings

PREDICTORS: dict[str, Predictor] = {
    kind.name: kind
    for kind in (
        Predictor(
            "ridge",
            "KernelRidge",
            "kernel ridge regression",
            RidgeSettings,
            RidgeModel,
            fit_ridge,
            plan_ridge,
            updates=True,
            folds=RIDGE_FOLDS,
        ),
        Predictor(
            "ridge-classifier",
            "KernelRidgeClassifier",
            "kernel ridge classifier",
            RidgeClassifierSettings,
            RidgeModel,
            fit_ridge,
            plan_ridge,
            probabilities=True,
            updates=True,
            check=any_targets,
            classify=True,
            multilabel=True,
            errors=OF_PROBABILITIES,
            folds=RIDGE_FOLDS,
        ),
        Predictor(
            "svc",
            "KernelSVC",
            "support vector classifier",
            MarginClassifierSettings,
            MarginClassifierModel,
            fit_margins,
            plan_margins,
            probabilities=True,
            check=any_targets,
            classify=True,
            errors=OF_PROBABILITIES,
        ),
        Predictor(
            "svr",
            "KernelSVR",
            "support vector regression",
            MarginRegressorSettings,
            MarginRegressorModel,
            fit_margins,
            plan_margins,
        ),
        Predictor(
            "quantile",
            "KernelQuantileRegressor",
            "quantile regression",
            QuantileSettings,
            QuantileModel,
            fit_margins,
            plan_margins,
            errors=("pinball",),
        ),
        Predictor(
            "one-class",
            "KernelOneClass",
            "one-class support vector machine",
            OneClassSettings,
            OneClassModel,
            fit_one_class,
            plan_one_class,
            check=any_targets,
            errors=(),
        ),
        Predictor(
            "boosting",
            "KernelBoostingClassifier",
            "boosting",
            BoostingSettings,
            BoostingModel,
            fit_boosting,
            plan_boosting,
            probabilities=True,
            check=any_targets,
            classify=True,
            errors=OF_PROBABILITIES,
        ),
        Predictor(
            "lp",
            "KernelLPClassifier",
            "linear programming classifier",
            LinearClassifierSettings,
            LinearClassifierModel,
            fit_margins,
            plan_margins,
            probabilities=True,
            check=any_targets,
            classify=True,
            errors=OF_PROBABILITIES,
        ),
        Predictor(
            "lp-regressor",
            "KernelLPRegressor",
            "linear programming regression",
            LinearRegressorSettings,
            LinearRegressorModel,
            fit_margins,
            plan_margins,
        ),
        # Class labels make a classifier of this one too.
        Predictor(
            "kmp",
            "KernelMatchingPursuit",
            "matching pursuit regression",
            PursuitSettings,
            PursuitModel,
            fit_pursuit,
            plan_pursuit,
            probabilities=True,
            check=any_targets,
            errors=(*OF_NUMBERS, *OF_PROBABILITIES),
        ),
        Predictor(
            "kmp-classifier",
            "KernelMatchingPursuitClassifier",
            "matching pursuit classifier",
            PursuitClassifierSettings,
            PursuitModel,
            fit_pursuit,
            plan_pursuit,
            probabilities=True,
            check=any_targets,
            classify=True,
            errors=OF_PROBABILITIES,
        ),
        Predictor(
            "gp",
            "GaussianProcessRegressor",
            "Gaussian process regression",
            GaussianSettings,
            GaussianModel,
            fit_gaussian,
            plan_gaussian,
            std=True,
            updates=True,
            errors=(*OF_NUMBERS, "nlpd"),
            folds=GAUSSIAN_FOLDS,
        ),
        Predictor(
            "gp-classifier",
            "GaussianProcessClassifier",
            "Gaussian process classifier",
            GeneralisedClassifierSettings,
            GeneralisedModel,
            fit_generalised,
            plan_generalised,
            probabilities=True,
            check=any_targets,
            classify=True,
            errors=OF_PROBABILITIES,
        ),
        Predictor(
            "poisson",
            "GaussianProcessPoissonRegressor",
            "Poisson regression by a Gaussian process",
            GeneralisedSettings,
            GeneralisedModel,
            fit_generalised,
            plan_generalised,
            std=True,
            check=check_counts,
            errors=(*OF_NUMBERS, "nlpd", "deviance"),
        ),
        Predictor(
            "committee",
            "BayesianCommitteeMachine",
            "Bayesian committee machine",
            CommitteeSettings,
            GaussianModel,
            fit_gaussian,
            plan_gaussian,
            std=True,
            updates=True,
            errors=(*OF_NUMBERS, "nlpd"),
        ),
    )
}

TRANSFORMERS: dict[str, Transformer] = {
    kind.name: kind
    for kind in (
        Transformer(
            "nystroem",
            "Nystroem",
            "Nystroem transformer",
            TransformerSettings,
            NystroemModel,
            fit_nystroem,
            plan_transformer,
        ),
        Transformer(
            "kernel-pca", "KernelPCA", "kernel PCA", KernelPCASettings, KernelPCAModel, fit_kernel_pca, plan_transformer
        ),
        Transformer(
            "kernel-cca", "KernelCCA", "kernel CCA", KernelCCASettings, KernelCCAModel, fit_kernel_cca, plan_kernel_cca
        ),
    )
}

KINDS: dict[str, Kind] = {**PREDICTORS, **TRANSFORMERS}
