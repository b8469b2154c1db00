"""Gaussian process classification, and regression of counts, on a basis chosen in a few sweeps."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from streamkernel.engine import Progress
from streamkernel.estimators._classifier import Classifier
from streamkernel.estimators._regressor import Regressor
from streamkernel.estimators.base import SupervisedEstimator, is_array_like
from streamkernel.fits.gaussian.generalised import fit_generalised
from streamkernel.models.generalised import GeneralisedModel
from streamkernel.settings.classes import GeneralisedClassifierSettings
from streamkernel.settings.generalised import GeneralisedSettings
from streamkernel.type_aliases import ArrayOrDask, Fields, Unchecked, Untyped


class GeneralisedEstimator(SupervisedEstimator):
    """Parameters and fitted attributes of `GaussianProcessClassifier` and `GaussianProcessPoissonRegressor`."""

    _model = GeneralisedModel
    _settings_class: ClassVar[type[GeneralisedSettings]] = GeneralisedSettings
    _fit = staticmethod(fit_generalised)

    model_: GeneralisedModel

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Unchecked = "gaussian",
        lengthscale: Unchecked = "evidence",
        ard: bool = False,
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        signal_variance: Unchecked = "evidence",
        tune: str = "sample",
        newton_tol: float = 1e-6,
        max_iterations: int = 30,
        rule: Unchecked = "few-sweep",
        objective: Unchecked = "prediction",
        rule_options: Fields | None = None,
        tol: float = 0.0,
        scale: str = "standard",
        metric: Unchecked = "none",
        metric_rank: int | None = None,
        random_state: Unchecked = 0,
        memory_limit: Unchecked = None,
        client: Untyped = None,
        progress: Progress | None = None,
    ) -> None:
        self._set_parameters(locals())

    def _adopt(self, model: GeneralisedModel) -> Self:
        super()._adopt(model)
        solution = model.record.solution
        self.signal_variance_ = model.record.signal_variance
        self.log_marginal_likelihood_value_ = solution.log_evidence
        self.n_iter_ = solution.iterations
        return self


class GaussianProcessClassifier(Classifier, GeneralisedEstimator):
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
    class_weight : "balanced" or dict, default None
        Weight of each class; see `KernelRidgeClassifier`.
    rule, objective, rule_options, tol, scale, metric, metric_rank : as in `KernelRidge`
    random_state, memory_limit, client, progress : as in `KernelRidge`

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
    _settings_class = GeneralisedClassifierSettings

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Unchecked = "gaussian",
        lengthscale: Unchecked = "evidence",
        ard: bool = False,
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        signal_variance: Unchecked = "evidence",
        tune: str = "sample",
        newton_tol: float = 1e-6,
        max_iterations: int = 30,
        class_weight: Unchecked = None,
        rule: Unchecked = "few-sweep",
        objective: Unchecked = "prediction",
        rule_options: Fields | None = None,
        tol: float = 0.0,
        scale: str = "standard",
        metric: Unchecked = "none",
        metric_rank: int | None = None,
        random_state: Unchecked = 0,
        memory_limit: Unchecked = None,
        client: Untyped = None,
        progress: Progress | None = None,
    ) -> None:
        self._set_parameters(locals())

    def predict_proba(self, X: Unchecked, *, diagonal: Unchecked = None) -> ArrayOrDask:
        """Probabilities (m, classes); a lazy Dask array for Dask, Zarr, xarray or stored rows.

        Parameters
        ----------
        X : (m, p)
        diagonal : (m,) values k(x, x), with a precomputed kernel; as in `GaussianProcessRegressor.predict`.
        """
        return self._values(X, self._fitted().predictions(), "probability", diagonal)

    def predict(self, X: Unchecked, *, diagonal: Unchecked = None) -> ArrayOrDask:
        """Labels, (m,); parameters are those of `predict_proba`, and lazy as there."""
        return self._labels(self._values(X, self._fitted().predictions(), "prediction", diagonal))


class GaussianProcessPoissonRegressor(Regressor, GeneralisedEstimator):
    """Poisson regression ``y ~ Poisson(exp(b + f(x)))``, ``f ~ GP(0, s k)``, on n chosen rows.

    Parameters and attributes are those of `GaussianProcessClassifier`, except `class_weight` and
    `classes_`. Targets are counts: numbers
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

    def predict(self, X: Unchecked, return_std: bool = False, *, diagonal: Unchecked = None) -> ArrayOrDask:
        """Mean rates (m,), and with `return_std` standard deviations of the counts.

        Parameters
        ----------
        X : (m, p)
        return_std : also return the standard deviations.
        diagonal : (m,) values k(x, x), with a precomputed kernel; as in `GaussianProcessRegressor.predict`.
        """
        work = self._fitted().predictions(std=return_std)
        if not return_std:
            return self._values(X, work, "prediction", diagonal)
        return self._values(X, work, "prediction", diagonal), self._values(X, work, "std", diagonal)

    def score(self, X: Unchecked, y: Unchecked = None, sample_weight: Unchecked = None) -> float:
        """``R^2`` of the mean rates; parameters are those of `KernelRidge.score`."""
        y = np.asarray(y, dtype=np.float64) if is_array_like(X) else y
        return super().score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Untyped:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
