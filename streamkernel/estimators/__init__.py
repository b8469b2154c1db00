"""One scikit-learn class a file, no maths in it."""

from streamkernel.estimators.bayesian_committee_machine import BayesianCommitteeMachine
from streamkernel.estimators.gaussian_process_regressor import GaussianProcessRegressor
from streamkernel.estimators.generalised_gaussian_process import (
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
)
from streamkernel.estimators.kernel_boosting_classifier import KernelBoostingClassifier
from streamkernel.estimators.kernel_cca import KernelCCA
from streamkernel.estimators.kernel_lp import KernelLPClassifier, KernelLPRegressor
from streamkernel.estimators.kernel_matching_pursuit import KernelMatchingPursuit, KernelMatchingPursuitClassifier
from streamkernel.estimators.kernel_one_class import KernelOneClass
from streamkernel.estimators.kernel_pca import KernelPCA
from streamkernel.estimators.kernel_quantile_regressor import KernelQuantileRegressor
from streamkernel.estimators.kernel_ridge import KernelRidge, KernelRidgeClassifier
from streamkernel.estimators.kernel_svm import KernelSVC, KernelSVR
from streamkernel.estimators.nystroem import Nystroem
from streamkernel.estimators.table_encoder import TableEncoder

__all__ = [
    "BayesianCommitteeMachine",
    "GaussianProcessClassifier",
    "GaussianProcessPoissonRegressor",
    "GaussianProcessRegressor",
    "KernelBoostingClassifier",
    "KernelCCA",
    "KernelLPClassifier",
    "KernelLPRegressor",
    "KernelMatchingPursuit",
    "KernelMatchingPursuitClassifier",
    "KernelOneClass",
    "KernelPCA",
    "KernelQuantileRegressor",
    "KernelRidge",
    "KernelRidgeClassifier",
    "KernelSVC",
    "KernelSVR",
    "Nystroem",
    "TableEncoder",
]
