"""Low-rank factors G with ``G G^T = K~``: products, solves, eigenvectors, neighbours, from a stored G or a basis."""

from streamkernel.factors.basis_record import BasisRecord
from streamkernel.factors.cca import FactorCCA
from streamkernel.factors.codes import Codes
from streamkernel.factors.eigen import FactorEigen
from streamkernel.factors.factor import BASIS, ROWS, Factor, checked_folder
from streamkernel.factors.features import FeatureRows
from streamkernel.factors.lazy import lazy_product, lazy_solve
from streamkernel.factors.neighbours import NearestRows, Neighbours, nearest_neighbours
from streamkernel.factors.operators import KernelOperator, WoodburyInverse, kernel_operator, preconditioner
from streamkernel.factors.pca import PCA_ROWS, pca_residual_traces
from streamkernel.factors.woodbury import NystroemRegression, nystroem_regression

__all__ = [
    "BASIS",
    "PCA_ROWS",
    "ROWS",
    "BasisRecord",
    "Codes",
    "Factor",
    "FactorCCA",
    "FactorEigen",
    "FeatureRows",
    "KernelOperator",
    "NearestRows",
    "Neighbours",
    "NystroemRegression",
    "WoodburyInverse",
    "checked_folder",
    "kernel_operator",
    "lazy_product",
    "lazy_solve",
    "nearest_neighbours",
    "nystroem_regression",
    "pca_residual_traces",
    "preconditioner",
]
