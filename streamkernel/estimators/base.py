"""The base class of the supervised estimators: input of any kind, fitted attributes, values of rows."""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from streamkernel.engine import Progress, Session, executor_of, layout_of, resident_bytes
from streamkernel.engine.lazy import lazy_rows
from streamkernel.engine.limits import parse_bytes
from streamkernel.estimators._names import in_order, names_of, tell_names, warn_of_names
from streamkernel.estimators.saved import SavedEstimator
from streamkernel.models.predicting import PredictingModel
from streamkernel.reductions import Collect, RowMap
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Table, open_table
from streamkernel.table.columns import frame_names, with_names
from streamkernel.table.finite import require_finite
from streamkernel.table.targets import plain_labels
from streamkernel.table.values import unmasked
from streamkernel.type_aliases import AnyArray, ArrayOrDask, Unchecked, Untyped


def is_array_like(X: Unchecked) -> bool:
    """Return whether X lies in memory; scikit-learn's own checks and messages then apply."""
    if isinstance(X, (str, PathLike, Table)):
        return False
    return type(X).__module__.split(".")[0] not in ("dask", "zarr", "xarray")


class SupervisedEstimator(SavedEstimator, BaseEstimator):
    """Fitting and predicting, for input of any kind; subclasses name their parameters and their model."""

    _classify: ClassVar[bool] = False
    _settings_class: ClassVar[type[BasisSettings]]
    _model: ClassVar[type[PredictingModel]]

    memory_limit: Unchecked
    client: Untyped
    progress: Progress | None

    model_: PredictingModel

    def _settings(self) -> BasisSettings:
        """The settings that the parameters describe."""
        return self._settings_class.from_parameters(self.get_params(deep=False))

    @staticmethod
    @abstractmethod
    def _fit(
        table: Table, settings: Unchecked, session: Session, *, estimator: str, **options: Unchecked
    ) -> PredictingModel:
        """The fit of the kind; options are those of `SupervisedRun`."""

    def fit(self, X: Unchecked, y: Unchecked = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : (m, p) NumPy, pandas, Dask or Zarr array, xarray Dataset, `Table`, or the path of a store.
        y : (m,) or (m, d) targets; may be left out where X contains them.

        Returns
        -------
        self

        Raises
        ------
        StreamKernelError
            An error of the parameters, the data or the machine; see `streamkernel.errors`.
        """
        settings = self._settings()
        limit = parse_bytes(self.memory_limit)
        flat, names = False, None
        if is_array_like(X):
            X, y = self._validated(X, y)
            flat, names = np.ndim(y) == 2, names_of(self)
        before = resident_bytes()
        table = with_names(open_table(X, y, classify=self._classify), names)
        session = Session(executor_of(self.client), progress=self.progress)
        model = self._fit(
            table,
            settings,
            session,
            memory_limit=limit,
            estimator=self._kind,
            targets_are_2d=flat,
            driver_bytes=before,
        )
        return self._adopt(model)

    def _validated(self, X: Unchecked, y: Unchecked) -> tuple[AnyArray, AnyArray]:
        """X and y as arrays, checked by scikit-learn; `require_finite` finds NaN and infinity, to name their place."""
        frame_names(X)
        y = plain_labels(y) if self._classify and y is not None else y
        if y is not None:
            require_finite(y, "y")
        X, y = validate_data(
            self,
            unmasked(X, "X"),
            y,
            dtype="numeric",
            multi_output=not self._classify,
            y_numeric=not self._classify,
            ensure_all_finite=False,
        )
        require_finite(X, "X", names_of(self))
        return X, y

    def _adopt(self, model: Any) -> Self:
        """Set the fitted attributes from a model's arrays."""
        self.model_ = model
        record, arrays = model.record, model.arrays
        self.n_features_in_ = len(record.columns)
        tell_names(self, model.known_columns)
        self.lengthscale_ = model.lengthscale
        self.kernel_ = model.basis.kernel
        self.component_indices_ = arrays["component_indices"]
        self.components_ = model.points
        flat = arrays["dual_coef"].shape[1] == 1 and model.flat
        self.dual_coef_ = arrays["dual_coef"][:, 0] if flat else arrays["dual_coef"]
        self.intercept_ = float(arrays["intercept"][0]) if flat else arrays["intercept"]
        self.residual_trace_ = record.certificate.residual_trace
        self.relative_residual_trace_ = record.certificate.relative_residual_trace
        self.n_sweeps_ = record.sweep_count
        return self

    def _values(self, X: Unchecked, work: RowMap, name: str = "prediction") -> ArrayOrDask:
        """Values of `work` for the rows of X: computed now for rows in memory, lazy otherwise."""
        if is_array_like(X):
            table = self._here(X)
            everything = Collect(work, name, table.n_rows)
            return Session().sweep(everything, table, "predict")
        table = warn_of_names(self, self.model_.known_columns, open_table(X).without_targets())
        table = self.model_.prepare(table)
        return lazy_rows(work, table, name, layout_of(work, table).block_rows)

    def _here(self, X: Unchecked) -> Table:
        """Rows in memory for a prediction, checked by scikit-learn and by `require_finite`."""
        known = self.model_.known_columns
        X = unmasked(in_order(X, known), "X")
        X = validate_data(self, X, dtype="numeric", reset=False, ensure_all_finite=False)
        require_finite(X, "X", names_of(self))
        # The names were checked above, so `warn_of_names` is not called.
        return self.model_.prepare(with_names(open_table(X), names_of(self)))

    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.model_

    def __sklearn_tags__(self) -> Untyped:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
