"""The base class of the transformers on a basis: input of any kind, fitted attributes, values of rows."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from streamkernel.basis import Basis
from streamkernel.engine import Session, executor_of, layout_of, resident_bytes
from streamkernel.engine.lazy import lazy_rows
from streamkernel.engine.limits import parse_bytes
from streamkernel.estimators._names import in_order, names_of, tell_names, warn_of_names
from streamkernel.estimators.base import is_array_like
from streamkernel.estimators.saved import SavedEstimator
from streamkernel.kernels import Kernel
from streamkernel.models.transformers import TransformerModel
from streamkernel.reductions import Collect
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Scaler, Table, open_table
from streamkernel.table.columns import frame_names, with_names
from streamkernel.table.finite import require_finite
from streamkernel.table.values import unmasked
from streamkernel.type_aliases import AnyArray, ArrayOrDask, Fields, Int, Unchecked, Untyped


class BasisTransformer(SavedEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Parameters and fitted attributes of `Nystroem` and `KernelPCA`."""

    kernel: Unchecked
    lengthscale: Unchecked
    gamma: Unchecked
    degree: Unchecked
    coef0: Unchecked
    kernel_params: Unchecked
    rule: Unchecked
    rule_options: Unchecked
    tol: Unchecked
    scale: Unchecked
    random_state: Unchecked
    memory_limit: Unchecked
    client: Untyped
    progress: Any

    model_: TransformerModel
    basis_: Basis
    scaler_: Scaler | None
    kernel_: Kernel
    lengthscale_: Any
    components_: AnyArray
    component_indices_: Int
    residual_trace_: float
    relative_residual_trace_: float
    n_features_in_: int
    n_sweeps_: int

    def _settings(self, n: int | None, **others: Unchecked) -> BasisSettings:
        """The settings that the parameters describe; `others` replace some of them."""
        own = {**self.get_params(deep=False), "n_components": n, "objective": "trace"}
        return BasisSettings.from_parameters(own | others)

    def _opened(self, X: Unchecked) -> tuple[Table, Session, Fields]:
        """Rows of a fit, its session, and the bytes that it may take and those that are taken already."""
        limit, names = parse_bytes(self.memory_limit), None
        if is_array_like(X):
            frame_names(X)
            X = validate_data(self, unmasked(X, "X"), dtype="numeric", ensure_all_finite=False)
            require_finite(X, "X", names_of(self))
            names = names_of(self)
        before = resident_bytes()
        table = with_names(open_table(X), names)
        session = Session(executor_of(self.client), progress=self.progress)
        return table, session, {"memory_limit": limit, "driver_bytes": before}

    def _adopt(self, model: Any) -> Self:
        """Set the fitted attributes from a model's parts."""
        self.model_ = model
        basis, record = model.basis, model.record
        self.basis_, self.scaler_, self.kernel_ = basis, model.scaler, basis.kernel
        self.lengthscale_ = getattr(basis.kernel, "lengthscale", None)
        self.component_indices_ = basis.rows
        self.components_ = model.points
        self.residual_trace_ = record.certificate.residual_trace
        self.relative_residual_trace_ = record.certificate.relative_residual_trace
        self.n_features_in_ = len(model.column_names)
        tell_names(self, model.known_columns)
        self.n_sweeps_ = record.sweep_count
        return self

    def _transformed(self, X: Unchecked) -> ArrayOrDask:
        """Values of the rows of X: computed now for rows in memory, lazy otherwise."""
        check_is_fitted(self, "model_")
        work = self.model_.transformation()
        if is_array_like(X):
            X = in_order(X, self.model_.known_columns)
            X = validate_data(self, unmasked(X, "X"), dtype="numeric", reset=False, ensure_all_finite=False)
            require_finite(X, "X", names_of(self))
            table = self.model_.prepare(with_names(open_table(X), names_of(self)))
            return Session().sweep(Collect(work, work.name, table.n_rows), table, work.name)
        table = warn_of_names(self, self.model_.known_columns, open_table(X).without_targets())
        table = self.model_.prepare(table)
        return lazy_rows(work, table, work.name, layout_of(work, table).block_rows)
