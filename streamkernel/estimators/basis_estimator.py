"""What the transformers that stand on a basis share: input of any kind, fitted attributes, values of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from streamkernel.basis import Basis
from streamkernel.engine import Executor, Session, ThreadExecutor, layout_of, resident_bytes
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.engine.lazy import lazy_rows
from streamkernel.errors import ShapeError
from streamkernel.estimators.base import is_array_like, parse_bytes
from streamkernel.estimators.basis_fit import BasisFit, fit_basis
from streamkernel.estimators.finite import require_finite
from streamkernel.estimators.settings import RidgeSettings, checked_seed
from streamkernel.kernels import Kernel
from streamkernel.reductions import Collect, FeatureMap, FeatureTimes
from streamkernel.table import Scaler, open_table

__all__ = ["BasisTransformer"]


class BasisTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Parameters and fitted attributes of `Nystroem` and `KernelPCA`."""

    kernel: Any
    lengthscale: Any
    gamma: Any
    degree: Any
    coef0: Any
    kernel_params: Any
    rule: Any
    rule_options: Any
    tol: Any
    scale: Any
    random_state: Any
    memory_limit: Any
    client: Any
    progress: Any

    basis_: Basis
    scaler_: Scaler | None
    kernel_: Kernel
    lengthscale_: Any
    components_: NDArray[Any]
    component_indices_: NDArray[np.int64]
    n_features_in_: int
    n_sweeps_: int

    def _settings(self, n: int | None) -> RidgeSettings:
        return RidgeSettings(
            n_components=n,
            kernel=self.kernel,
            lengthscale=self.lengthscale,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
            tol=self.tol,
            rule=self.rule,
            objective="trace",
            rule_options=dict(self.rule_options or {}),
            scale=self.scale,
            seed=checked_seed(self.random_state),
        )

    def _fit_basis(self, X: Any, n: int | None, **options: Any) -> BasisFit:
        """Choose a basis of n functions (None for the default), and keep it; options are those of `fit_basis`."""
        settings, limit = self._settings(n), parse_bytes(self.memory_limit)
        if is_array_like(X):
            X = validate_data(self, X, dtype="numeric", ensure_all_finite=False)
            require_finite(X, "X", getattr(self, "feature_names_in_", None))
        before = resident_bytes()
        table = open_table(X)
        executor: Executor = ThreadExecutor() if self.client is None else ClusterExecutor(self.client)
        session = Session(executor, progress=self.progress)
        found = fit_basis(table, settings, session, memory_limit=limit, driver_bytes=before, **options)
        chosen = found.chosen
        basis = chosen.selection.basis
        self.basis_, self.scaler_, self.kernel_ = basis, chosen.scaler, chosen.kernel
        self.lengthscale_ = getattr(chosen.kernel, "lengthscale", None)
        self.component_indices_ = basis.rows
        Z = basis.points
        if chosen.scaler is not None:
            Z = (Z.astype(np.float64) * chosen.scaler.scale + chosen.scaler.mean).astype(Z.dtype)
        self.components_ = Z
        self.n_features_in_ = table.n_features
        self.n_sweeps_ = found.sweeps
        return found

    def _values(self, X: Any, work: FeatureMap | FeatureTimes) -> Any:
        """Values of `work` for the rows of X: computed now for rows in memory, lazy otherwise."""
        if is_array_like(X):
            X = validate_data(self, X, dtype="numeric", reset=False, ensure_all_finite=False)
            require_finite(X, "X", getattr(self, "feature_names_in_", None))
            table = open_table(X).with_scaler(self.scaler_)
            return Session(ThreadExecutor()).sweep(Collect(work, work.name, table.n_rows), table, work.name)
        table = open_table(X).without_targets()
        if table.n_features != self.n_features_in_:
            raise ShapeError(
                f"the table has {table.n_features} features, the transformer was fitted on {self.n_features_in_}; "
                "transform rows with the same columns"
            )
        table = table.with_scaler(self.scaler_)
        return lazy_rows(work, table, work.name, layout_of(work, table).block_rows)

    def _check_fitted(self) -> None:
        check_is_fitted(self, "basis_")
