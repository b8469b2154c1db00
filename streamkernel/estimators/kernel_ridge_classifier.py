"""Classification by kernel ridge regression on class indicators."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from streamkernel.estimators.model import RidgeModel
from streamkernel.estimators.ridge_estimator import RidgeEstimator

__all__ = ["KernelRidgeClassifier"]


class KernelRidgeClassifier(ClassifierMixin, RidgeEstimator):
    """Least squares classification: one indicator column per class, all from the same sums; the largest wins.

    Parameters and attributes are those of `KernelRidge`, and ``classes_``: the sorted labels.
    """

    _kind = "ridge-classifier"
    _classify = True

    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        X, y = super()._validated(X, y)
        check_classification_targets(y)
        return X, y

    def _adopt(self, model: RidgeModel) -> Self:
        super()._adopt(model)
        assert model.classes is not None
        self.classes_ = model.classes
        return self

    def decision_function(self, X: Any) -> Any:
        """Values of the indicators, (m, classes); for two classes the second minus the first, (m,)."""
        values = self._values(X, self._fitted().predictions())
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values

    def predict(self, X: Any) -> Any:
        """Labels, (m,); a lazy Dask array for Dask, Zarr, xarray or stored rows."""
        codes = self._values(X, self._fitted().predictions(argmax=True))
        if isinstance(codes, np.ndarray):
            return self.classes_[codes]
        return codes.map_blocks(lambda block: self.classes_[block], dtype=self.classes_.dtype)
