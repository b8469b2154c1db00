"""Quantile regression on a basis chosen in a few sweeps."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_array

from streamkernel.engine import Progress
from streamkernel.estimators._regressor import told_if_undefined
from streamkernel.estimators.base import is_array_like
from streamkernel.estimators.kernel_svm import MarginEstimator
from streamkernel.models.margins import QuantileModel
from streamkernel.reductions.scores import pinball_explained
from streamkernel.settings.quantile import QuantileSettings
from streamkernel.table import weights_in_memory
from streamkernel.type_aliases import ArrayOrDask, Fields, Unchecked, Untyped


class KernelQuantileRegressor(RegressorMixin, MarginEstimator):
    """Quantiles of the target at each row, on n chosen rows, with an exact duality gap, on tables of any size.

    Minimises ``1/2 |b|^2 + C sum_i w_i max(q r_i, (q - 1) r_i)``, ``r_i = y_i - f(x_i)``, for each level q, with
    ``f(x) = g(x)^T b + c`` and g the whitened features of the basis (Koenker & Bassett 1978; Takeuchi et al. 2006). The
    constant is not penalised, so that a share q of the rows of the fit is below f. Targets are centred and divided by
    their standard deviation first, so that C does not depend on their unit.

    Of other rows more than q are below a low quantile, because the functions are fitted too closely. With a validation
    fold each function is shifted so that its share of the held-out rows is below it, and f is then fitted to all rows.
    Functions of several levels are solved for in the same sweeps. Predictions of a row are sorted, so that they do not
    cross; that increases no loss (Chernozhukov et al. 2010).

    Parameters
    ----------
    n_components : int, default None
        Number of basis functions n; None for ``sqrt(m) log m``, at most 1000.
    quantile : float or sequence of floats, default 0.5
        The level q, between 0 and 1, or several different ones.
    C : float, sequence of floats or "cv", default None
        Cost of a unit of loss, the same for all levels. Of several values the one with the smallest mean loss on a
        validation fold (an eighth of the rows) is taken; "cv" finds them. None for "cv" with 2,000 rows or more, for 1
        with fewer.
    calibration : {"held-out", "none"}, default None
        Whether functions are shifted by the held-out rows. None for "held-out" where C is chosen by these.
    gap_tol, max_sweeps : as in `KernelSVC`
    kernel, lengthscale, gamma, degree, coef0, kernel_params, metric, metric_rank : as in `KernelRidge`
    rule, objective, rule_options, tol, scale : as in `KernelRidge`
    fit_intercept : bool, default True
    random_state, memory_limit, client, progress : as in `KernelRidge`

    Attributes
    ----------
    quantiles_ : (K,) the levels, in ascending order
    shifts_ : (K,) shifts by the held-out rows, in units of the target; None without them
    C_, duality_gap_, n_iter_ : as in `KernelSVC`
    components_, component_indices_, dual_coef_, intercept_, lengthscale_, kernel_ : as in `KernelRidge`, with a
        function for each level
    residual_trace_, relative_residual_trace_, n_sweeps_, model_

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import KernelQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (1000, 1))
    >>> y = np.sin(X[:, 0]) + 0.2 * rng.standard_normal(1000)
    >>> model = KernelQuantileRegressor(30, quantile=[0.05, 0.95], C=10.0).fit(X, y)
    >>> low, high = model.predict(X).T
    >>> 0.87 < np.mean((low <= y) & (y <= high)) < 0.93
    True
    """

    _kind = "quantile"
    _model = QuantileModel
    _settings_class: ClassVar[type[QuantileSettings]] = QuantileSettings

    model_: QuantileModel

    def __init__(
        self,
        n_components: int | None = None,
        *,
        quantile: Unchecked = 0.5,
        C: Unchecked = None,
        calibration: str | None = None,
        gap_tol: float = 1e-4,
        max_sweeps: int = 100,
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

    def _adopt(self, model: Any) -> Self:
        super()._adopt(model)
        self.quantiles_, self.shifts_ = np.array(model.levels), model.arrays.get("calibration_shift")
        return self

    def predict(self, X: Unchecked) -> ArrayOrDask:
        """Quantiles, (m,) float64, or (m, K) in the order of `quantiles_` for a sequence of levels; lazy for Dask."""
        return self._values(X, self._fitted().outputs())

    def score(self, X: Unchecked, y: Unchecked = None, sample_weight: Unchecked = None) -> float:
        """``1 - loss / least``, averaged over the levels: the share of the pinball loss that is explained.

        `least` is the loss of the best constant for the same rows, as in scikit-learn's ``d2_pinball_score``; for rows
        outside memory within 1e-4 of it.

        Parameters
        ----------
        X, y, sample_weight : rows, targets and row weights, as `fit` takes them. Rows outside memory are read once.
        """
        if not is_array_like(X):
            return told_if_undefined(self._score_of_table(X, y, sample_weight, "d2"))
        values = np.asarray(self.predict(X)).reshape(len(X), -1)
        targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y").ravel()
        w = weights_in_memory(sample_weight, np.shape(X))
        return told_if_undefined(pinball_explained(targets, values, self.quantiles_, w))
