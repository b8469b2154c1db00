"""Classification by kernel matching pursuit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from streamkernel.estimators.pursuit_estimator import PursuitEstimator
from streamkernel.estimators.pursuit_model import PursuitModel

__all__ = ["KernelMatchingPursuitClassifier"]


class KernelMatchingPursuitClassifier(ClassifierMixin, PursuitEstimator):
    """Sparse classification: least squares on the signs of two classes (Popovici et al. 2005), or on indicators.

    More classes than two share their functions, and the largest indicator wins. Parameters and attributes are those of
    `KernelMatchingPursuit`, and ``classes_``: the sorted labels. The path of two classes is that of targets -1 and 1.
    """

    _kind = "kmp-classifier"
    _classify = True

    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        X, y = super()._validated(X, y)
        check_classification_targets(y)
        return X, y

    def _adopt(self, model: PursuitModel) -> Self:
        super()._adopt(model)
        assert model.classes is not None
        self.classes_ = model.classes
        return self

    def decision_function(self, X: Any) -> Any:
        """Values of the indicators, (m, classes); for two classes the function whose sign tells them, (m,)."""
        values = self._values(X, self._fitted().predictions())
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values

    def predict(self, X: Any) -> Any:
        """Labels, (m,); a lazy Dask array for Dask, Zarr, xarray or stored rows."""
        return self._labels(self._values(X, self._fitted().predictions(argmax=True)))

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Labels by the first 1, 2, ... terms, each as `predict` gives them."""
        for codes in self._staged(X, argmax=True):
            yield self._labels(codes)

    def _labels(self, codes: Any) -> Any:
        if isinstance(codes, np.ndarray):
            return self.classes_[codes]
        return codes.map_blocks(lambda block: self.classes_[block], dtype=self.classes_.dtype)
