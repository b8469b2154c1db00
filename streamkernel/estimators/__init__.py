"""One scikit-learn class a file, no maths in it."""

from streamkernel.estimators.fit import fit_ridge, plan_ridge
from streamkernel.estimators.kernel_ridge import KernelRidge
from streamkernel.estimators.kernel_ridge_classifier import KernelRidgeClassifier
from streamkernel.estimators.model import RidgeModel
from streamkernel.estimators.settings import RidgeSettings

__all__ = ["KernelRidge", "KernelRidgeClassifier", "RidgeModel", "RidgeSettings", "fit_ridge", "plan_ridge"]
