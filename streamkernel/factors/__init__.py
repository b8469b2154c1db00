"""Low-rank factors G with ``G G^T = K~``: products, solves, eigenvectors, neighbours, from a stored G or a basis."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from streamkernel.factors._scaler_record import scaler_of
from streamkernel.factors.cca import FactorCCA
from streamkernel.factors.codes import Codes
from streamkernel.factors.eigen import FactorEigen
from streamkernel.factors.factor import BASIS, ROWS, Factor, checked_folder
from streamkernel.factors.features import FeatureRows
from streamkernel.factors.neighbours import NearestRows, Neighbours, nearest_neighbours
from streamkernel.factors.pca import PCA_ROWS, pca_residual_traces
from streamkernel.factors.saved_basis import SavedBasis

if TYPE_CHECKING:
    from streamkernel.factors.lazy import lazy_product, lazy_solve
    from streamkernel.factors.operators import KernelOperator, WoodburyInverse, kernel_operator, preconditioner
    from streamkernel.factors.woodbury import NystroemRegression, nystroem_regression

__all__ = [
    "BASIS",
    "PCA_ROWS",
    "ROWS",
    "Codes",
    "Factor",
    "FactorCCA",
    "FactorEigen",
    "FeatureRows",
    "KernelOperator",
    "NearestRows",
    "Neighbours",
    "NystroemRegression",
    "SavedBasis",
    "WoodburyInverse",
    "checked_folder",
    "kernel_operator",
    "lazy_product",
    "lazy_solve",
    "nearest_neighbours",
    "nystroem_regression",
    "pca_residual_traces",
    "preconditioner",
    "scaler_of",
]


# Imported on first access: dask.array and scipy.sparse take long, and only those who ask for these need them.
_HOMES = {
    "KernelOperator": "operators",
    "NystroemRegression": "woodbury",
    "WoodburyInverse": "operators",
    "kernel_operator": "operators",
    "lazy_product": "lazy",
    "lazy_solve": "lazy",
    "nystroem_regression": "woodbury",
    "preconditioner": "operators",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'streamkernel.factors' has no attribute {name!r}")
    return getattr(import_module(f"streamkernel.factors.{_HOMES[name]}"), name)
