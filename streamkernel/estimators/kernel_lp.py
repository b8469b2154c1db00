"""Linear programming machines: sparse models, whose columns are priced over all rows."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from streamkernel.engine import Progress
from streamkernel.estimators._regressor import Regressor
from streamkernel.estimators.kernel_svm import MarginClassifier, MarginEstimator
from streamkernel.models.linear import LinearClassifierModel, LinearRegressorModel
from streamkernel.settings.linear import LinearClassifierSettings, LinearRegressorSettings
from streamkernel.type_aliases import Fields, Unchecked, Untyped


class LinearProgramEstimator(MarginEstimator):
    """Fitted attributes of the linear programming machines."""

    def _adopt(self, model: Any) -> Self:
        super()._adopt(model)
        problems = model.record.solution.problems
        self.objective_ = sum(problem.primal for problem in problems)
        self.bound_ = sum(problem.dual for problem in problems)
        return self


class KernelLPClassifier(MarginClassifier, LinearProgramEstimator):
    """Linear programming machine for classes: few functions of all rows, with a bound, on tables of any size.

    Minimises ``sum_j |a_j| + C sum_i w_i max(0, 1 - t_i f(x_i))`` with ``f(x) = sum_j a_j k(x, x_j) + b``, where each
    row is a candidate x_j (Smola & Schoelkopf 2000, section 6.2). The sum of absolute values makes most a_j 0. Columns
    k(., x_j) and rows are generated: the program in memory has some of both, and a sweep prices all columns and finds
    the rows inside the margin. Each sweep gives a lower bound of the minimum over all columns. Several classes are
    solved for one against the rest, in the same sweeps. HiGHS solves the programs: ``pip install streamkernel[lp]``.

    The kernel need not be positive definite. Where several functions are optimal, the one is found that the simplex
    method ends with: the same of the same rows in the same order, whatever the machine's load or number of workers.

    Parameters
    ----------
    n_components : int, default None
        Largest number of functions for each class; None for 500. A warning tells where they ended the fit.
    C : float or sequence of floats, default None
        Cost of a unit of loss; None for 1. Of several values the one with the fewest wrong classes on a validation fold
        (an eighth of the rows) is taken; each begins with the rows and functions of the one before.
    calibration : {"platt", "isotonic", "none"}, default None
        As in `KernelSVC`; None for "platt" where C is chosen by held-out rows, else for "none".
    gap_tol : float, default 0.001
        The fit ends when objective and bound differ by at most this share.
    max_sweeps : int, default 100
        Largest number of sweeps of one solution; a warning tells of a larger gap.
    working_rows : int, default 50000
        Largest number of rows in memory for each class: those inside the margin, and some more.
    candidates : int, default None
        Number of rows that are drawn as candidates for functions; None for all rows. Sweeps then cost less, and the
        bound is that of the program of these candidates.
    kernel, lengthscale, gamma, degree, coef0, kernel_params, metric, metric_rank : as in `KernelRidge`
    scale : as in `KernelRidge`
    fit_intercept : bool, default True
    class_weight : "balanced" or dict, default None
        Weight of each class; see `KernelRidgeClassifier`.
    random_state, memory_limit, client, progress : as in `KernelRidge`

    Attributes
    ----------
    classes_ : the sorted labels
    objective_, bound_ : the objective, and the lower bound of its minimum, in sum over the functions
    duality_gap_ : largest relative gap of a function: its objective is at most this share above the minimum
    C_, n_iter_ : as in `KernelSVC`
    components_, component_indices_, dual_coef_, intercept_, lengthscale_, kernel_ : as in `KernelRidge`; the functions
        of two classes are ``-f / 2`` and ``f / 2``
    residual_trace_, relative_residual_trace_, n_sweeps_, model_ : as of the full machine of `KernelSVC`

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import KernelLPClassifier
    >>> X = np.random.default_rng(0).standard_normal((400, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = KernelLPClassifier(C=10.0).fit(X, y)
    >>> model.predict([[1.0, 1.0], [1.0, -1.0]]).tolist()
    ['same', 'other']
    >>> model.duality_gap_ <= 1e-3, len(model.components_) < 100
    (True, True)
    """

    _kind = "lp"
    _model = LinearClassifierModel
    _settings_class: ClassVar[type[LinearClassifierSettings]] = LinearClassifierSettings

    def __init__(
        self,
        n_components: int | None = None,
        *,
        C: Unchecked = None,
        calibration: str | None = None,
        gap_tol: float = 1e-3,
        max_sweeps: int = 100,
        working_rows: int = 50_000,
        candidates: int | None = None,
        kernel: Unchecked = None,
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
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


class KernelLPRegressor(Regressor, LinearProgramEstimator):
    """Linear programming machine for numbers: few functions of all rows, with a bound, on tables of any size.

    Minimises ``sum_j |a_j| + C sum_i w_i max(0, |y_i - f(x_i)| - epsilon)``, as `KernelLPClassifier` does with its
    loss. Targets are centred and divided by their standard deviation first, so that C and epsilon do not depend on
    their unit; several are solved for in the same sweeps.

    Parameters
    ----------
    n_components : int, default None
        Largest number of functions for each target; None for 500. A warning tells where they ended the fit.
    C : float or sequence of floats, default None
        Cost of a unit of loss; None for 1. Of several values the one with the smallest mean loss on a validation fold
        (an eighth of the rows) is taken.
    epsilon : float, default 0.1
        Half the width of the tube, in standard deviations of the target.
    gap_tol, max_sweeps, working_rows, candidates : as in `KernelLPClassifier`
    kernel, lengthscale, gamma, degree, coef0, kernel_params, metric, metric_rank : as in `KernelRidge`
    scale : as in `KernelRidge`
    fit_intercept : bool, default True
    random_state, memory_limit, client, progress : as in `KernelRidge`

    Attributes
    ----------
    objective_, bound_, duality_gap_, C_, n_iter_ : as in `KernelLPClassifier`
    components_, component_indices_, dual_coef_, intercept_, lengthscale_, kernel_ : as in `KernelRidge`
    residual_trace_, relative_residual_trace_, n_sweeps_, model_ : as in `KernelLPClassifier`

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import KernelLPRegressor
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> model = KernelLPRegressor(C=10.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> abs(float(model.predict([[1.0]])[0]) - np.sin(1.0)) < 0.1, len(model.components_) < 20
    (True, True)
    """

    _kind = "lp-regressor"
    _several_targets = True
    _model = LinearRegressorModel
    _settings_class: ClassVar[type[LinearRegressorSettings]] = LinearRegressorSettings

    def __init__(
        self,
        n_components: int | None = None,
        *,
        C: Unchecked = None,
        epsilon: float = 0.1,
        gap_tol: float = 1e-3,
        max_sweeps: int = 100,
        working_rows: int = 50_000,
        candidates: int | None = None,
        kernel: Unchecked = None,
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
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
