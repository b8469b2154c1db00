"""Kernel matching pursuit, regression and classification: few functions of a large dictionary."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from streamkernel.engine import Progress
from streamkernel.errors import ParameterError
from streamkernel.estimators._classifier import IndicatorClassifier
from streamkernel.estimators._regressor import Regressor
from streamkernel.estimators.base import SupervisedEstimator, is_array_like
from streamkernel.fits.pursuit import fit_pursuit
from streamkernel.models.pursuit import PursuitModel
from streamkernel.pursuit import AUTO, PursuitPath
from streamkernel.reductions.predictions import probabilities_of_indicators
from streamkernel.settings.classes import PursuitClassifierSettings
from streamkernel.settings.pursuit import PursuitSettings
from streamkernel.table import open_table
from streamkernel.type_aliases import ArrayOrDask, Fields, Unchecked, Untyped
from streamkernel.wording import option

_ROWS = 4096  # of a block in staged predictions


class PursuitEstimator(SupervisedEstimator):
    """Parameters and fitted attributes of the estimators of matching pursuit; see `KernelMatchingPursuit`."""

    _model = PursuitModel
    _settings_class: ClassVar[type[PursuitSettings]] = PursuitSettings
    _fit = staticmethod(fit_pursuit)

    model_: PursuitModel

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Unchecked = "gaussian",
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        variant: str = "pre-fitting",
        shrinkage: float = 1.0,
        pool: str = "shared",
        draw: str = "uniform",
        candidates: int | None = None,
        picks: int | None = None,
        eps: float = 0.05,
        quantile: float = 0.95,
        validation: Unchecked = AUTO,
        patience: int | None = None,
        choose_by: str = "loss",
        bound_gamma: float | None = None,
        loss: str = "squared",
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

    def _settings(self) -> PursuitSettings:
        given = {**self.get_params(deep=False), "rule_options": None}
        other = self.validation
        if isinstance(other, (tuple, list)):
            if len(other) != 2:
                raise ParameterError(f"{option('validation')} has {len(other)} parts; give a share, (X, y) or a table")
            given["validation"] = open_table(*other, classify=self._classify and other[1] is not None, sparse=True)
        elif isinstance(other, (str, PathLike)) and other != AUTO:
            given["validation"] = open_table(other, classify=self._classify, sparse=True)
        return self._settings_class.from_parameters(given)

    def _adopt(self, model: PursuitModel) -> Self:
        super()._adopt(model)
        self.active_set_ = model.active_set
        self.path_: PursuitPath = model.path
        return self

    def _staged(self, X: Unchecked, *, argmax: bool) -> Iterator[ArrayOrDask]:
        """Predictions by the first 1, 2, ... steps; lazy ones for rows that are not in memory."""
        model: PursuitModel = self._fitted()
        if is_array_like(X):
            yield from self._staged_here(model, X, argmax)
            return
        for terms in range(1, model.terms + 1):
            yield self._values(X, model.predictions(argmax=argmax, terms=terms))

    def _staged_here(self, model: PursuitModel, X: Unchecked, argmax: bool) -> Iterator[ArrayOrDask]:
        """Stages for rows in memory: all columns are computed once, then each step adds one."""
        table, stages = self._here(X), model.stages
        along = np.concatenate(
            [
                stages.along(model.basis.block(table.read(start, min(start + _ROWS, table.n_rows)).X))
                for start in range(0, table.n_rows, _ROWS)
            ]
        )
        c = int(stages.constant)
        values = model.arrays["offset"] + along[:, :c] @ stages.amounts[:c]
        flat = model.predictions().columns["prediction"][0] is None
        for step, amount in enumerate(stages.amounts[c:], start=c):
            values = values + np.outer(along[:, step], amount)
            yield values.argmax(axis=1) if argmax else values[:, 0] if flat else values


class KernelMatchingPursuit(Regressor, PursuitEstimator):
    """Sparse regression ``f(x) = sum_j a_j k(x, z_j) + b`` by least squares on functions that are picked greedily.

    Kernel matching pursuit (Vincent & Bengio 2002) over sweeps: each sweep draws candidates, computes the sums that
    compare them, and picks several (Popovici, Bengio & Thiran 2005 draw a fresh sub-pool for each pick:
    ``pool="split"``). There is no ridge: the small number of functions keeps the model from fitting noise.

    Parameters
    ----------
    n_components : int, default None
        Most terms; None for ``sqrt(m) log m``, at most 300.
    kernel : str, Kernel or dict, default "gaussian"
        As in `KernelRidge`, or "sigmoid". The kernel need not be positive definite: any function of two rows is
        allowed.
    lengthscale, gamma, degree, coef0, kernel_params : as in `KernelRidge`
    variant : "pre-fitting", "back-fitting" or "basic", default "pre-fitting"
        "pre-fitting" picks the function with the smallest residual after all coefficients are fitted again.
        "back-fitting" picks the function nearest to the residual, then fits all again. "basic" only adds the pick, and
        may pick a function twice.
    shrinkage : float in (0, 1], default 1
        Share of each step that "basic" takes.
    pool : "shared", "split" or "full", default "shared"
        "shared": all candidates of a sweep compete at each of its picks. "split": each pick has its own sub-pool (the
        paper's stochastic pursuit). "full": every row is a candidate, in one sweep, for a few thousand rows.
    draw : "uniform" or "residual", default "uniform"
        Distribution of the candidates: uniform, as in the paper, or by the residuals of the model.
    candidates : int, default None
        Candidates per pick; None for as many as `eps` and `quantile` require ("split"), else for 16, and more in small
        sweeps.
    picks : int, default None
        Picks per sweep; None for a 40th of the terms, at least 5.
    eps, quantile : float, default 0.05 and 0.95
        With "split" a pick is among the best 1 - quantile of all rows with probability 1 - eps: 59 candidates.
    validation : "auto", float in [0, 1), (X, y), Table, the path of a store, or None, default "auto"
        Held-out rows: a share of the rows, whose error the same sweeps measure, or other rows, which have their own
        sweeps. The model keeps the number of terms with the smallest error on them. "auto": a tenth of the rows; for
        fewer than 500 rows, 50 but at most a quarter; none where fewer than 20 rows are distinct. Equal rows stay
        together. None or 0: no row is held out.
    patience : int, default None
        End after this number of terms without a smaller error.
    choose_by : "loss" or "error", default "loss"
        For classes: keep the number of terms with the smallest loss on these rows, or with the fewest errors.
    bound_gamma : float, default None
        For one target: Theorem 3 of Hussain & Shawe-Taylor (`model_.bound`) counts the rows whose error is larger than
        this. The gamma must be fixed before the data are seen. Costs one sweep. Two classes always have a bound, on the
        wrongly classified rows.
    loss : "squared" or "logistic", default "squared"
        For classes, "logistic" fits probabilities; see `KernelMatchingPursuitClassifier`.
    tol : float, default 0
        End when the residual sum of squares is ``tol`` times that of a constant.
    scale, metric, metric_rank, fit_intercept : as in `KernelRidge`
    random_state, memory_limit, client, progress : as in `KernelRidge`

    Attributes
    ----------
    active_set_ : (terms,) row numbers of the functions, in the order of picking; basic may have one twice
    path_ : PursuitPath, residuals for every number of terms, on the rows fitted and on those held out
    components_ : (n, p) the functions' points, in the units of X; component_indices_ : (n,) their row numbers
    dual_coef_ : (n,) or (n, d); intercept_ : float or (d,)
    lengthscale_, kernel_ : lengthscale and kernel of the fit
    residual_trace_, relative_residual_trace_ : certificate ``tr(K - K~)`` over the rows fitted; where the kernel is not
        positive definite all of the trace, which certifies nothing
    n_sweeps_ : passes over the rows
    model_ : PursuitModel, everything that `save` writes

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import KernelMatchingPursuit
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> y = np.sin(X[:, 0]) + X[:, 1]
    >>> model = KernelMatchingPursuit(20).fit(X, y)
    >>> bool(model.score(X, y) > 0.99), len(model.active_set_), len(list(model.staged_predict(X)))
    (True, 20, 20)
    """

    _kind = "kmp"
    _several_targets = True

    def staged_predict(self, X: Unchecked) -> Iterator[ArrayOrDask]:
        """Predictions by the first 1, 2, ... terms, in the form of `predict`.

        For "pre-fitting" and "back-fitting", each is the least squares fit to these functions alone.
        """
        return self._staged(X, argmax=False)


def _has_probabilities(estimator: Untyped) -> bool:
    model = getattr(estimator, "model_", None)
    loss = estimator.loss if model is None else model.record.settings.loss
    return bool(loss == "logistic")


class KernelMatchingPursuitClassifier(IndicatorClassifier, PursuitEstimator):
    """Sparse classification: least squares on the signs of two classes (Popovici et al. 2005), or on indicators.

    More classes than two share their functions, and the largest indicator wins. Parameters and attributes are those of
    `KernelMatchingPursuit`, and ``classes_``: the sorted labels. The path of two classes is that of targets -1 and 1.

    With ``loss="logistic"`` each sweep is a step of Newton's method on more functions (for more than two classes a
    smaller step), and a few sweeps at the end fit the coefficients alone. The model then has probabilities. Its path
    has the weighted squares of the last step, and the losses measured at the start of each sweep: ``path_.losses``.

    Parameters
    ----------
    class_weight : "balanced" or dict, default None
        Weight of each class, by which those of its rows are multiplied: ``(sum of all row weights) / (number of classes
        * sum of those of the class)`` for "balanced", or numbers by label; other classes have weight 1, as all have for
        None.
    """

    _kind = "kmp-classifier"
    _settings_class = PursuitClassifierSettings

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Unchecked = "gaussian",
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        variant: str = "pre-fitting",
        shrinkage: float = 1.0,
        pool: str = "shared",
        draw: str = "uniform",
        candidates: int | None = None,
        picks: int | None = None,
        eps: float = 0.05,
        quantile: float = 0.95,
        validation: Unchecked = AUTO,
        patience: int | None = None,
        choose_by: str = "loss",
        bound_gamma: float | None = None,
        loss: str = "squared",
        tol: float = 0.0,
        scale: str = "standard",
        metric: Unchecked = "none",
        metric_rank: int | None = None,
        fit_intercept: bool = True,
        class_weight: Unchecked = None,
        random_state: Unchecked = 0,
        memory_limit: Unchecked = None,
        client: Untyped = None,
        progress: Progress | None = None,
    ) -> None:
        self._set_parameters(locals())

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Unchecked) -> ArrayOrDask:
        """Probabilities of the classes, (m, C); only with the logistic loss."""
        values = self._values(X, self._fitted().predictions())
        if isinstance(values, np.ndarray):
            return probabilities_of_indicators(values)
        return values.map_blocks(probabilities_of_indicators, dtype=np.float64)

    def staged_predict(self, X: Unchecked) -> Iterator[ArrayOrDask]:
        """Labels by the first 1, 2, ... terms, in the form of `predict`."""
        for codes in self._staged(X, argmax=True):
            yield self._labels(codes)
