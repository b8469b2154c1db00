"""The base class of the transformers on a basis: settings, input of any kind, fitted attributes, values of rows."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from streamkernel.byte_counts import parse_bytes
from streamkernel.engine import Session, resident_bytes
from streamkernel.estimators.base import SavedEstimator, checked, is_array_like, names_of, opened
from streamkernel.models.transformers import TransformerModel
from streamkernel.settings.transformers import TransformerSettings
from streamkernel.table import Table
from streamkernel.table.columns import frame_names
from streamkernel.type_aliases import ArrayOrDask, Fields, Unchecked


class BasisTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavedEstimator):
    """Input and fitted attributes of `Nystroem` and `KernelPCA`."""

    _settings_class: ClassVar[type[TransformerSettings]] = TransformerSettings

    model_: TransformerModel

    def _settings(self) -> TransformerSettings:
        """The settings that the parameters describe."""
        return self._settings_class.from_parameters(self.get_params(deep=False))

    def _opened(self, X: Unchecked, sample_weight: Unchecked) -> tuple[Table, Session, Fields]:
        """Rows of a fit, its session, and the bytes that it may take and those that are taken already."""
        limit, names = parse_bytes(self.memory_limit), None
        if is_array_like(X):
            frame_names(X)
            X = checked(self, X)
            names = names_of(self)
        before = resident_bytes()
        table = opened(X, None, sample_weight, names)
        return table, self._session(), {"memory_limit": limit, "driver_bytes": before}

    def _adopt(self, model: Any) -> Self:
        super()._adopt(model)
        self._adopt_basis(model)
        self.basis_, self.scaler_ = model.basis, model.scaler
        self.lengthscale_ = getattr(self.kernel_, "lengthscale", None)
        return self

    def transform(self, X: Unchecked) -> ArrayOrDask:
        """Features or components (m, r) float64; a lazy Dask array for Dask, Zarr, xarray or stored rows."""
        work = self._fitted().transformation()
        return self._values(X, work, work.name)
