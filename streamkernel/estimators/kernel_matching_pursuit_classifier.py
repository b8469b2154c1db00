"""Classification by kernel matching pursuit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from streamkernel.estimators.pursuit_estimator import PursuitEstimator
from streamkernel.estimators.pursuit_model import PursuitModel
from streamkernel.reductions import probabilities_of_indicators

__all__ = ["KernelMatchingPursuitClassifier"]


def _has_probabilities(estimator: Any) -> bool:
    model = getattr(estimator, "model_", None)
    loss = estimator.loss if model is None else model.config["settings"]["loss"]
    return bool(loss == "logistic")


class KernelMatchingPursuitClassifier(ClassifierMixin, PursuitEstimator):
    """Sparse classification: least squares on the signs of two classes (Popovici et al. 2005), or on indicators.

    More classes than two share their functions, and the largest indicator wins. Parameters and attributes are those of
    `KernelMatchingPursuit`, and ``classes_``: the sorted labels. The path of two classes is that of targets -1 and 1.

    With ``loss="logistic"`` each sweep is a step of Newton's method on more functions (for more than two classes a
    smaller step), and a few sweeps at the end fit the coefficients alone. The model then has probabilities. Its path
    has the weighted squares of the last step, and the losses measured at the start of each sweep: ``path_.losses``.
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
        """Values of the indicators, (m, classes); for two classes one function, (m,), whose sign gives the class."""
        values = self._values(X, self._fitted().predictions())
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values

    def predict(self, X: Any) -> Any:
        """Labels, (m,); a lazy Dask array for Dask, Zarr, xarray or stored rows."""
        return self._labels(self._values(X, self._fitted().predictions(argmax=True)))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, (m, C); only with the logistic loss."""
        values = self._values(X, self._fitted().predictions())
        if isinstance(values, np.ndarray):
            return probabilities_of_indicators(values)
        return values.map_blocks(probabilities_of_indicators, dtype=np.float64)

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Labels by the first 1, 2, ... terms, in the form of `predict`."""
        for codes in self._staged(X, argmax=True):
            yield self._labels(codes)

    def _labels(self, codes: Any) -> Any:
        if isinstance(codes, np.ndarray):
            return self.classes_[codes]
        return codes.map_blocks(lambda block: self.classes_[block], dtype=self.classes_.dtype)
