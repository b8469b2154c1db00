"""One scikit-learn class a file, no maths in it."""

from streamkernel.estimators.fit import fit_ridge
from streamkernel.estimators.kernel_pca import KernelPCA
from streamkernel.estimators.kernel_ridge import KernelRidge
from streamkernel.estimators.kernel_ridge_classifier import KernelRidgeClassifier
from streamkernel.estimators.model import RidgeModel
from streamkernel.estimators.nystroem import Nystroem
from streamkernel.estimators.plan import plan_ridge
from streamkernel.estimators.settings import RidgeSettings

__all__ = [
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeClassifier",
    "Nystroem",
    "RidgeModel",
    "RidgeSettings",
    "fit_ridge",
    "plan_ridge",
]
