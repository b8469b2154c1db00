"""The base class of the transformers on a basis: settings, input of any kind, fitted attributes, values of rows."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from streamkernel.estimators.base import SavedEstimator
from streamkernel.models.transformers import TransformerModel
from streamkernel.settings.transformers import TransformerSettings
from streamkernel.type_aliases import ArrayOrDask, Unchecked


class BasisTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavedEstimator):
    """Input and fitted attributes of `Nystroem` and `KernelPCA`."""

    _settings_class: ClassVar[type[TransformerSettings]] = TransformerSettings

    model_: TransformerModel

    def _settings(self) -> TransformerSettings:
        """The settings that the parameters describe."""
        return self._settings_class.from_parameters(self.get_params(deep=False))

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
