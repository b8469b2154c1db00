"""Regression of counts with a Gaussian process prior on their log rate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import column_or_1d

from streamkernel.estimators.generalised_estimator import GeneralisedEstimator

__all__ = ["GaussianProcessPoissonRegressor"]


class GaussianProcessPoissonRegressor(RegressorMixin, GeneralisedEstimator):
    """Poisson regression ``y ~ Poisson(exp(b + f(x)))``, ``f ~ GP(0, s k)``, on n chosen rows.

    Parameters and attributes are those of `GaussianProcessClassifier`, except `classes_`. Targets are counts: numbers
    >= 0, whole or not. Predictions are means of the rate over Laplace's approximation, ``exp(m + v / 2)``.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import GaussianProcessPoissonRegressor
    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-2, 2, (500, 1))
    >>> y = generator.poisson(np.exp(1 + np.sin(2 * X[:, 0])))
    >>> rate = GaussianProcessPoissonRegressor(20).fit(X, y).predict([[0.785], [-0.785]])
    >>> bool(6 < rate[0] < 9), bool(0.7 < rate[1] < 1.4)
    (True, True)
    """

    _kind = "poisson"

    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        X, y = super()._validated(X, y)
        # One target: as in scikit-learn, a column (m, 1) is accepted with a warning.
        return X, column_or_1d(y, warn=True) if y.shape[1:] == (1,) else y

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean rates (m,), and with `return_std` standard deviations of the counts."""
        work = self._fitted().predictions(std=return_std)
        if not return_std:
            return self._values(X, work, "prediction")
        return self._values(X, work, "prediction"), self._values(X, work, "std")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the mean rates, as in scikit-learn's regressors."""
        return float(super().score(X, np.asarray(y, dtype=np.float64), sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
