"""What the regressions share: predictions, and their score, of rows of any kind."""

from __future__ import annotations

import math
import warnings

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning

from streamkernel.estimators.base import SupervisedEstimator, is_array_like
from streamkernel.table import weights_in_memory
from streamkernel.type_aliases import ArrayOrDask, Unchecked


def told_if_undefined(score: float) -> float:
    """The share of a spread that is explained; NaN with the warning that scikit-learn's scores of arrays give."""
    if math.isnan(score):
        warnings.warn(
            "the score is undefined: there are fewer than two rows, or numbers overflow",
            UndefinedMetricWarning,
            stacklevel=3,
        )
    return score


class Regressor(RegressorMixin, SupervisedEstimator):
    """Base of the regressions."""

    def predict(self, X: Unchecked) -> ArrayOrDask:
        """Predicted targets, (m,) or (m, d) float64; a lazy Dask array for Dask, Zarr, xarray or stored rows."""
        return self._values(X, self._fitted().predictions())

    def score(self, X: Unchecked, y: Unchecked = None, sample_weight: Unchecked = None) -> float:
        """``R^2 = 1 - sum w (y - f)^2 / sum w (y - mean y)^2``, averaged over targets.

        Parameters
        ----------
        X, y, sample_weight : rows, targets and row weights, as `fit` takes them. Rows outside memory are read once.
            Of fewer than two rows the score is NaN, with scikit-learn's warning.
        """
        if not is_array_like(X):
            return told_if_undefined(self._score_of_table(X, y, sample_weight, "r2"))
        return float(super().score(X, y, weights_in_memory(sample_weight, np.shape(X))))
