"""Low-rank factors G with ``G G^T = K~``: products, solves, eigenvectors, neighbours, from a stored G or a basis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.factors._scaler_record import scaler_of
    from streamkernel.factors.cca import FactorCCA
    from streamkernel.factors.codes import Codes
    from streamkernel.factors.eigen import FactorEigen
    from streamkernel.factors.factor import BASIS, ROWS, Factor, checked_folder
    from streamkernel.factors.features import FeatureRows
    from streamkernel.factors.lazy import lazy_product, lazy_solve
    from streamkernel.factors.neighbours import NearestRows, Neighbours, nearest_neighbours
    from streamkernel.factors.operators import KernelOperator, WoodburyInverse, kernel_operator, preconditioner
    from streamkernel.factors.pca import PCA_ROWS, pca_residual_traces
    from streamkernel.factors.saved_basis import SavedBasis
    from streamkernel.factors.woodbury import NystroemRegression, nystroem_regression
else:
    __getattr__ = on_demand(
        __name__,
        {
            "_scaler_record": "scaler_of",
            "cca": "FactorCCA",
            "codes": "Codes",
            "eigen": "FactorEigen",
            "factor": "BASIS ROWS Factor checked_folder",
            "features": "FeatureRows",
            "neighbours": "NearestRows Neighbours nearest_neighbours",
            "pca": "PCA_ROWS pca_residual_traces",
            "saved_basis": "SavedBasis",
            "lazy": "lazy_product lazy_solve",
            "operators": "KernelOperator WoodburyInverse kernel_operator preconditioner",
            "woodbury": "NystroemRegression nystroem_regression",
        },
    )

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
