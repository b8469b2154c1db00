"""Gaussian process classification on a basis chosen in a few sweeps."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from streamkernel.estimators.generalised_estimator import GeneralisedEstimator
from streamkernel.estimators.generalised_model import GeneralisedModel

__all__ = ["GaussianProcessClassifier"]


class GaussianProcessClassifier(ClassifierMixin, GeneralisedEstimator):
    """Logistic (two classes) and softmax regression with a Gaussian process prior, on n chosen rows.

    ``p(y | f)`` is logistic in ``f = b + sqrt(s) G u``, ``u ~ N(0, I)``, G the whitened features of the basis, b free.
    Newton's method (IRLS) finds the mode, with one sweep per iteration. Laplace's approximation gives its uncertainty:
    probabilities are averages over it (Rasmussen & Williams 2006, chapter 3; Tresp 2001, section 2.3).

    Parameters
    ----------
    n_components : int, default None
        Number of basis functions n; None for ``sqrt(m) log m``, at most 1000.
    kernel, gamma, degree, coef0, kernel_params : as in `KernelRidge`
    lengthscale : "evidence", "median", "auto", float or sequence of floats, default "evidence"
        "evidence" maximises Laplace's approximation of the evidence on a sample of rows.
    ard : bool, default False
        Whether "evidence" finds a lengthscale for each feature.
    signal_variance : "evidence" or float, default "evidence"
        Variance s of the prior.
    tune : "sample" or "none", default "sample"
        With "none", a lengthscale of "evidence" is the median distance; a signal variance of "evidence" is still found.
    newton_tol : float, default 1e-6
        Newton's method ends when the predicted decrease of a step is less than this share of the loss.
    max_iterations : int, default 30
    rule, objective, rule_options, tol, scale, random_state, memory_limit, client, progress : as in `KernelRidge`

    Attributes
    ----------
    classes_ : the sorted labels
    components_, component_indices_, dual_coef_, intercept_, lengthscale_, kernel_ : as in `KernelRidge`
    signal_variance_ : s
    log_marginal_likelihood_value_ : Laplace's approximation of the evidence at the mode, in nats
    n_iter_ : Newton steps
    residual_trace_, relative_residual_trace_, n_sweeps_, model_

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import GaussianProcessClassifier
    >>> X = np.random.default_rng(0).standard_normal((400, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = GaussianProcessClassifier(40).fit(X, y)
    >>> model.predict([[1.0, 1.0], [1.0, -1.0]]).tolist()
    ['same', 'other']
    """

    _kind = "gp-classifier"
    _classify = True

    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        X, y = super()._validated(X, y)
        check_classification_targets(y)
        return X, y

    def _adopt(self, model: GeneralisedModel) -> Self:
        super()._adopt(model)
        assert model.classes is not None
        self.classes_ = model.classes
        return self

    def predict_proba(self, X: Any) -> Any:
        """Probabilities (m, classes); a lazy Dask array for Dask, Zarr, xarray or stored rows."""
        return self._values(X, self._fitted().predictions(), "probability")

    def predict(self, X: Any) -> Any:
        """Labels, (m,); a lazy Dask array for Dask, Zarr, xarray or stored rows."""
        codes = self._values(X, self._fitted().predictions(), "prediction")
        if isinstance(codes, np.ndarray):
            return self.classes_[codes]
        return codes.map_blocks(lambda block: self.classes_[block], dtype=self.classes_.dtype)
