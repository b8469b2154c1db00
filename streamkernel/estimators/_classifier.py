"""What the classifiers share: labels in, codes in the model, labels out."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from streamkernel.estimators.base import SupervisedEstimator, is_array_like
from streamkernel.models.predicting import PredictingModel
from streamkernel.table import weights_in_memory
from streamkernel.type_aliases import AnyArray, ArrayOrDask, Unchecked


class Classifier(ClassifierMixin, SupervisedEstimator):
    """Base of the classifiers: checked labels, ``classes_``, and labels for predicted codes."""

    _classify = True

    classes_: Any

    def _validated(self, X: Unchecked, y: Unchecked) -> tuple[AnyArray, AnyArray]:
        X, y = super()._validated(X, y)
        check_classification_targets(y)
        return X, y

    def _adopt(self, model: PredictingModel) -> Self:
        super()._adopt(model)
        # As scikit-learn does: of labels that a row has or has not, the two classes of each.
        self.classes_ = [np.array([0, 1])] * model.target_count if model.classes is None else model.classes
        return self

    def score(self, X: Unchecked, y: Unchecked = None, sample_weight: Unchecked = None) -> float:
        """The share of rows whose predicted label is theirs, of all weights.

        Parameters
        ----------
        X, y, sample_weight : rows, labels and row weights, as `fit` takes them. Rows outside memory are read once.
        """
        if not is_array_like(X):
            return self._score_of_table(X, y, sample_weight, "accuracy")
        return float(super().score(X, y, weights_in_memory(sample_weight, np.shape(X))))

    def _labels(self, codes: ArrayOrDask) -> ArrayOrDask:
        """Labels of codes, (m,); lazy where the codes are."""
        if isinstance(codes, np.ndarray):
            return self.classes_[codes]
        return codes.map_blocks(lambda block: self.classes_[block], dtype=self.classes_.dtype)


class IndicatorClassifier(Classifier):
    """Base of the classifiers that fit one indicator column per class."""

    def decision_function(self, X: Unchecked) -> ArrayOrDask:
        """Values of the indicators, (m, classes); for two classes the second minus the first, (m,)."""
        return self._decisions(self._values(X, self._fitted().predictions()))

    @staticmethod
    def _decisions(values: ArrayOrDask) -> ArrayOrDask:
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values

    def predict(self, X: Unchecked) -> ArrayOrDask:
        """Labels, (m,); a lazy Dask array for Dask, Zarr, xarray or stored rows."""
        return self._labels(self._values(X, self._fitted().predictions(argmax=True)))
