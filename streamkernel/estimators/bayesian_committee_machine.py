"""The Bayesian committee machine for regression, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Self

from streamkernel.engine import Progress
from streamkernel.estimators.gaussian_process_regressor import GaussianProcessRegressor
from streamkernel.models.gaussian import GaussianModel
from streamkernel.settings.gaussian import CommitteeSettings
from streamkernel.type_aliases import Fields, Unchecked, Untyped


class BayesianCommitteeMachine(GaussianProcessRegressor):
    """A committee of exact Gaussian processes, each of `block_size` rows, combined at query points.

    Each member predicts f at the n query points. The predictions are combined as if the members were independent given
    f at these points (Tresp 2001, eqs. (8), (9)); this is exact where f at these points contains all that members
    share. The model is sparse Gaussian process regression with blocks of noise (PITC). Its basis is the query points:
    chosen rows (landmarks).

    Parameters
    ----------
    n_components : int, default None
        Number of landmarks among the query points; None for ``sqrt(m) log m``, at most 1000. There should be as many as
        the effective degrees of freedom of the rows; too few give a warning.
    block_size : int, default 1000
        Number of rows of a member: a parameter of the model, not of the machine. A member costs at least
        ``block_size^3 / 3`` operations.
    partition : "rows" or "cells", default "rows"
        Rows of a member: "rows" in the stored order of a shuffled table, or "cells" of rows near a common centre.
    queries : (q, p) array, default None
        Points where predictions will be asked for. They join the landmarks, so that the committee predicts there at
        query points.
    kernel, lengthscale, ard, gamma, degree, coef0, kernel_params : as in `GaussianProcessRegressor`
    signal_variance, noise_variance, tune, rule, objective, rule_options : as in `GaussianProcessRegressor`
    tol, scale, metric, metric_rank, fit_intercept : as in `GaussianProcessRegressor`
    random_state, memory_limit, client, progress : as in `GaussianProcessRegressor`

    Attributes
    ----------
    components_ : (n, p) query points, in the units of X
    member_weights_ : (B,) share of each member in the combined prediction; None after `update` has folded rows in
    effective_df_, dual_coef_, signal_variance_, noise_variance_, log_marginal_likelihood_value_, ...
        As in `GaussianProcessRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import BayesianCommitteeMachine
    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-3, 3, (600, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * generator.standard_normal(600)
    >>> machine = BayesianCommitteeMachine(40, block_size=100).fit(X, y)
    >>> machine.member_weights_.shape, bool(abs(machine.predict([[0.0]])[0]) < 0.1)
    ((6,), True)
    """

    _kind = "committee"
    _settings_class = CommitteeSettings

    def __init__(
        self,
        n_components: int | None = None,
        *,
        block_size: int = 1000,
        partition: str = "rows",
        queries: Unchecked = None,
        kernel: Unchecked = "gaussian",
        lengthscale: Unchecked = "evidence",
        ard: bool = False,
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        signal_variance: Unchecked = "evidence",
        noise_variance: Unchecked = "evidence",
        tune: str = "sample",
        rule: Unchecked = "few-sweep",
        objective: Unchecked = "prediction",
        rule_options: Fields | None = None,
        tol: float = 0.0,
        scale: str = "standard",
        metric: Unchecked = "none",
        metric_rank: int | None = None,
        fit_intercept: bool = True,
        random_state: Unchecked = 0,
        memory_limit: Unchecked = None,
        client: Untyped = None,
        progress: Progress | None = None,
    ) -> None:
        self._set_parameters(locals())

    def _adopt(self, model: GaussianModel) -> Self:
        super()._adopt(model)
        self.member_weights_ = model.arrays.get("member_weights")
        return self
