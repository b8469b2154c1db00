"""One scikit-learn class a file, no maths in it."""

from streamkernel.estimators.bayesian_committee_machine import BayesianCommitteeMachine
from streamkernel.estimators.fit import fit_ridge
from streamkernel.estimators.fit_gaussian import fit_gaussian, plan_gaussian
from streamkernel.estimators.fit_generalised import fit_generalised, plan_generalised
from streamkernel.estimators.gaussian_model import GaussianModel
from streamkernel.estimators.gaussian_process_classifier import GaussianProcessClassifier
from streamkernel.estimators.gaussian_process_poisson import GaussianProcessPoissonRegressor
from streamkernel.estimators.gaussian_process_regressor import GaussianProcessRegressor
from streamkernel.estimators.gaussian_settings import CommitteeSettings, GaussianSettings, GeneralisedSettings
from streamkernel.estimators.generalised_model import GeneralisedModel
from streamkernel.estimators.kernel_cca import KernelCCA
from streamkernel.estimators.kernel_matching_pursuit import KernelMatchingPursuit
from streamkernel.estimators.kernel_matching_pursuit_classifier import KernelMatchingPursuitClassifier
from streamkernel.estimators.kernel_pca import KernelPCA
from streamkernel.estimators.kernel_ridge import KernelRidge
from streamkernel.estimators.kernel_ridge_classifier import KernelRidgeClassifier
from streamkernel.estimators.model import RidgeModel
from streamkernel.estimators.nystroem import Nystroem
from streamkernel.estimators.plan import plan_ridge
from streamkernel.estimators.pursuit_model import PursuitModel
from streamkernel.estimators.settings import RidgeSettings

__all__ = [
    "BayesianCommitteeMachine",
    "CommitteeSettings",
    "GaussianModel",
    "GaussianProcessClassifier",
    "GaussianProcessPoissonRegressor",
    "GaussianProcessRegressor",
    "GaussianSettings",
    "GeneralisedModel",
    "GeneralisedSettings",
    "KernelCCA",
    "KernelMatchingPursuit",
    "KernelMatchingPursuitClassifier",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeClassifier",
    "Nystroem",
    "PursuitModel",
    "RidgeModel",
    "RidgeSettings",
    "fit_gaussian",
    "fit_generalised",
    "fit_ridge",
    "plan_gaussian",
    "plan_generalised",
    "plan_ridge",
]
