"""Support vector machines on a basis chosen in a few sweeps."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from streamkernel.engine import Progress
from streamkernel.estimators._classifier import IndicatorClassifier
from streamkernel.estimators._regressor import Regressor
from streamkernel.estimators.base import SupervisedEstimator
from streamkernel.fits.margins.margins import fit_margins
from streamkernel.models.margins import MarginClassifierModel, MarginModel, MarginRegressorModel
from streamkernel.settings.margins import MarginClassifierSettings, MarginRegressorSettings
from streamkernel.type_aliases import ArrayOrDask, Fields, Unchecked, Untyped


class MarginEstimator(SupervisedEstimator):
    """Fitted attributes of the support vector machines."""

    _fit = staticmethod(fit_margins)

    model_: MarginModel

    def _adopt(self, model: Any) -> Self:
        super()._adopt(model)
        solution = model.record.solution
        self.C_, self.duality_gap_, self.n_iter_ = solution.C, solution.gap, solution.iterations
        return self


def has_curves(estimator: Untyped) -> bool:
    """Whether there are probabilities; before a fit, whether the parameters ask for them."""
    if hasattr(estimator, "model_"):
        return bool(estimator.model_.has_probabilities)
    given = estimator.get_params()
    if given["calibration"] is not None:
        return bool(given["calibration"] != "none")
    return given["C"] is not None and (isinstance(given["C"], str) or np.ndim(given["C"]) > 0)


class MarginClassifier(IndicatorClassifier, MarginEstimator):
    """Base of the machines for classes, which have probabilities where held-out rows were to give them."""

    @available_if(has_curves)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Unchecked) -> ArrayOrDask:
        """Probabilities (m, classes) by `calibration`; a lazy Dask array for Dask, Zarr, xarray or stored rows.

        Raises
        ------
        AttributeError
            The model has none: C was given, and `calibration` was not, or there were fewer than 60 rows.
        """
        return self._values(X, self._fitted().checking(), "probability")


class KernelSVC(MarginClassifier):
    """Support vector classification on n chosen rows, with an exact duality gap, on tables of any size.

    Minimises ``1/2 |b|^2 + C sum_i w_i loss(t_i f(x_i))`` with ``f(x) = g(x)^T b + c``, g the whitened features of the
    basis, ``|b|^2`` the squared norm of f in the space of the kernel. The square of the constant is penalised, too
    (Tresp 2001, section 3.3), but for the full machine. Several classes are solved for one against the rest, all in
    the same sweeps.

    Parameters
    ----------
    n_components : int, default None
        Number of basis functions n; None for ``sqrt(m) log m``, at most 1000.
    C : float, sequence of floats or "cv", default None
        Cost of a unit of loss, as in scikit-learn's SVC. Of several values the one with the fewest wrong classes on a
        validation fold (an eighth of the rows) is taken; "cv" finds them. None for "cv" with 2,000 rows or more, for 1
        with fewer.
    loss : {"squared_hinge", "hinge", "smoothed_hinge", "logistic"}, default "squared_hinge"
        ``max(0, 1 - t f)^2`` and the two others by Newton's method; the hinge ``max(0, 1 - t f)`` by an interior point
        method. One sweep for each iteration.
    sharpness : float, default 5
        s of the smoothed hinge ``(log(1 + exp(s (1 - t f))) / s)^2`` (Lee & Mangasarian 2001).
    calibration : {"platt", "isotonic", "none"}, default None
        How probabilities follow from decision values of the validation fold, by functions that were fitted without it.
        None for "platt" where C is chosen by the fold, else for "none". Labels are those of the decision values: where
        two classes are about as likely, the more probable one may be another, as in scikit-learn's SVC. A class without
        rows in the fold has one probability for all rows; a warning tells of it.
    multi_class : {"one-vs-rest", "one-vs-one"}, default "one-vs-rest"
        Of three classes or more: a function for each class against all others, or for each pair of classes, fitted to
        the rows of these two, all in the same sweeps. Votes of the pairs give the label, and of equal votes what the
        functions of a class say together (`decision_function`, as in scikit-learn's SVC); probabilities of the pairs
        are coupled (Wu, Lin & Weng 2004).
    gap_tol : float, default 0.0001
        The fit ends when the duality gap is at most this share of the objective.
    max_sweeps : int, default 100
        Largest number of sweeps of one solution; a warning tells of a larger gap.
    machine : {"reduced", "full"}, default "reduced"
        The functions: those of the basis, or those of all rows, of which the support vectors remain. The full machine
        is libsvm's, exact, with a constant that is not penalised. It needs ``loss="hinge"`` and C as one or several
        numbers (None for 1); at most `n_components` rows (None for 50,000) are in memory at a time, and hold the
        support vectors. Each class has its own sweeps.
    kernel, lengthscale, gamma, degree, coef0, kernel_params, metric, metric_rank : as in `KernelRidge`
    rule, objective, rule_options, tol, scale : as in `KernelRidge`
    fit_intercept : bool, default True
    class_weight : "balanced" or dict, default None
        Weight of each class; see `KernelRidgeClassifier`.
    random_state, memory_limit, client, progress : as in `KernelRidge`

    Attributes
    ----------
    classes_ : the sorted labels
    C_ : C
    duality_gap_ : relative duality gap: the objective is at most this share above its minimum
    n_iter_ : sweeps of the solution on all rows
    components_, component_indices_, dual_coef_, intercept_, lengthscale_, kernel_ : as in `KernelRidge`; the functions
        of two classes are ``-f / 2`` and ``f / 2``
    residual_trace_, relative_residual_trace_, n_sweeps_, model_ : of the full machine the residual trace is the whole
        trace, and says nothing: no features are computed of its support vectors

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import KernelSVC
    >>> X = np.random.default_rng(0).standard_normal((400, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = KernelSVC(40, C=10.0).fit(X, y)
    >>> model.predict([[1.0, 1.0], [1.0, -1.0]]).tolist()
    ['same', 'other']
    >>> model.duality_gap_ <= 1e-4
    True
    """

    _kind = "svc"
    _model = MarginClassifierModel
    _settings_class: ClassVar[type[MarginClassifierSettings]] = MarginClassifierSettings

    def __init__(
        self,
        n_components: int | None = None,
        *,
        C: Unchecked = None,
        loss: str = "squared_hinge",
        sharpness: float = 5.0,
        calibration: str | None = None,
        multi_class: str = "one-vs-rest",
        gap_tol: float = 1e-4,
        max_sweeps: int = 100,
        machine: str = "reduced",
        kernel: Unchecked = None,
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        rule: Unchecked = "few-sweep",
        objective: Unchecked = "prediction",
        rule_options: Fields | None = None,
        tol: float = 0.0,
        scale: str = "standard",
        metric: Unchecked = None,
        metric_rank: int | None = None,
        fit_intercept: bool = True,
        class_weight: Unchecked = None,
        random_state: Unchecked = 0,
        memory_limit: Unchecked = None,
        client: Untyped = None,
        progress: Progress | None = None,
    ) -> None:
        self._set_parameters(locals())


class KernelSVR(Regressor, MarginEstimator):
    """Support vector regression on n chosen rows, with an exact duality gap, on tables of any size.

    Minimises ``1/2 |b|^2 + C sum_i w_i loss(y_i - f(x_i))`` with ``f(x) = g(x)^T b + c``, g the whitened features of
    the basis. Targets are centred and divided by their standard deviation first, so that C and epsilon do not depend
    on their unit. The fit is scikit-learn's ``SVR(C=C, epsilon=epsilon)`` to such targets, on the features of the
    basis, with a constant whose square is penalised.

    Parameters
    ----------
    n_components : int, default None
        Number of basis functions n; None for ``sqrt(m) log m``, at most 1000.
    C : float, sequence of floats or "cv", default None
        Cost of a unit of loss. Of several values the one with the smallest mean loss on a validation fold (an eighth
        of the rows) is taken; "cv" finds them. None for "cv" with 2,000 rows or more, for 1 with fewer.
    loss : {"squared_epsilon_insensitive", "epsilon_insensitive", "huber"}, default "squared_epsilon_insensitive"
        ``max(0, |r| - epsilon)^2`` by Newton's method; ``max(0, |r| - epsilon)`` by an interior point method; huber is
        ``r^2`` up to epsilon and linear beyond.
    epsilon : float, default 0.1
        Half the width of the tube, in standard deviations of the target.
    gap_tol, max_sweeps : as in `KernelSVC`
    machine : {"reduced", "full"}, default "reduced"
        As in `KernelSVC`; the full one needs ``loss="epsilon_insensitive"``.
    kernel, lengthscale, gamma, degree, coef0, kernel_params, metric, metric_rank : as in `KernelRidge`
    rule, objective, rule_options, tol, scale : as in `KernelRidge`
    fit_intercept : bool, default True
    random_state, memory_limit, client, progress : as in `KernelRidge`

    Attributes
    ----------
    C_, duality_gap_, n_iter_ : as in `KernelSVC`
    components_, component_indices_, dual_coef_, intercept_, lengthscale_, kernel_ : as in `KernelRidge`
    residual_trace_, relative_residual_trace_, n_sweeps_, model_ : as in `KernelSVC`

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import KernelSVR
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> model = KernelSVR(20, C=100.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> abs(float(model.predict([[1.0]])[0]) - np.sin(1.0)) < 0.05
    True
    """

    _kind = "svr"
    _several_targets = True
    _model = MarginRegressorModel
    _settings_class: ClassVar[type[MarginRegressorSettings]] = MarginRegressorSettings

    def __init__(
        self,
        n_components: int | None = None,
        *,
        C: Unchecked = None,
        loss: str = "squared_epsilon_insensitive",
        epsilon: float = 0.1,
        gap_tol: float = 1e-4,
        max_sweeps: int = 100,
        machine: str = "reduced",
        kernel: Unchecked = None,
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        rule: Unchecked = "few-sweep",
        objective: Unchecked = "prediction",
        rule_options: Fields | None = None,
        tol: float = 0.0,
        scale: str = "standard",
        metric: Unchecked = None,
        metric_rank: int | None = None,
        fit_intercept: bool = True,
        random_state: Unchecked = 0,
        memory_limit: Unchecked = None,
        client: Untyped = None,
        progress: Progress | None = None,
    ) -> None:
        self._set_parameters(locals())
