"""Kernel ridge regression and classification on a basis chosen in a few sweeps."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from streamkernel.engine import Progress
from streamkernel.errors import ParameterError
from streamkernel.estimators._classifier import IndicatorClassifier
from streamkernel.estimators._regressor import Regressor
from streamkernel.estimators._updating import UpdatingEstimator
from streamkernel.fits.ridge.ridge import fit_ridge
from streamkernel.models.ridge import RidgeModel
from streamkernel.settings.classes import RidgeClassifierSettings
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.table.values import listed
from streamkernel.type_aliases import ArrayOrDask, Fields, Unchecked, Untyped
from streamkernel.wording import option


class RidgeEstimator(UpdatingEstimator):
    """Parameters and fitted attributes of the kernel ridge estimators; see `KernelRidge`."""

    _model = RidgeModel
    _settings_class: ClassVar[type[RidgeSettings]] = RidgeSettings
    _fit = staticmethod(fit_ridge)

    model_: RidgeModel

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Unchecked = None,
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        alpha: Unchecked = None,
        solver: str = "auto",
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

    def _adopt(self, model: RidgeModel) -> Self:
        self.alpha_ = model.record.alpha
        return super()._adopt(model)


def keeps_sums(estimator: Untyped) -> bool:
    """Whether the fit keeps the sums that further rows are added to: conjugate gradients make none."""
    if estimator.solver == "cg":
        raise AttributeError("solver='cg' keeps no sums, to which partial_fit adds rows; take solver='direct'")
    return True


class KernelRidge(Regressor, RidgeEstimator):
    """Reduced kernel ridge regression: ``f(x) = sum_j a_j k(x, z_j) + b`` on n chosen rows z_j.

    Minimises ``|Y - K a - b|^2 + alpha a^T k(Z, Z) a`` (Smola & Schoelkopf 2000, eq. (7)) from the sums of one sweep.
    A few more sweeps choose the basis, for any n. Memory holds at most a few n x n matrices and some chunks of rows.

    Parameters
    ----------
    n_components : int, default None
        Number of basis functions n; None for ``sqrt(m) log m``, at most 1000. More than the rows are all rows, with a
        warning, in every estimator.
    kernel : str, Kernel or dict, default None
        "gaussian" ("rbf"), "laplacian", "matern12", "matern32", "matern52", "rational_quadratic", "polynomial"
        ("poly"), "linear", "cosine", "arc_cosine0", "arc_cosine1", "arc_cosine2"; or a `Kernel`, with the lengthscale
        it has. "auto" takes the one of "gaussian", "matern52" and "laplacian" with the smallest error on held-out rows
        of a sample. None for "auto" with 2,000 rows or more, where nothing else names the kernel or its lengthscale;
        for "gaussian" with fewer.
    lengthscale : "median", "auto", float or sequence of floats, default "median"
        Median distance between sampled rows (after scaling); "auto" searches a grid around it by GCV on a sample; a
        sequence has one lengthscale per feature.
    gamma, degree, coef0 : as in scikit-learn's KernelRidge
        For the Gaussian kernel ``lengthscale = 1 / sqrt(2 gamma)``.
    kernel_params : dict
        Further parameters of the kernel, such as ``nu``, ``shape`` or ``order``.
    alpha : "gcv", "cv" or float, default None
        Ridge, added to the diagonal as scikit-learn does (not multiplied by the number of rows); "gcv" chooses it by
        generalised cross-validation from the same sums, "cv" by the least error on folds of the rows that are held out
        in the same sweep. ``model_.record.validation`` then has this error and its standard error.
        None for "cv" with 2,000 rows or more, or with solver="cg"; else for "gcv".
    solver : "auto", "direct" or "cg", default "auto"
        "direct" decomposes the sums of one sweep; "cg" finds the coefficients for a given alpha, or for the one of "cv"
        on one fold, by preconditioned conjugate gradients, one sweep per iteration, without any n x n sums: such a
        model cannot be updated. "auto" takes the one with less work by the plan's count, "direct" for "gcv", and for
        "cv" with at most 4,000 functions.
    rule : str or Rule, default "few-sweep"
        Rule that chooses the basis: one of `streamkernel.selection.RULES`, described in docs/methods.md.
    objective : "prediction", "trace" or float in [0, 1], default "prediction"
        Score of candidates in few-sweep: by what they explain of the targets, or by the residual trace; a number mixes
        both.
    rule_options : dict
        Further options of the rule; see `streamkernel.selection.options_of`.
    tol : float, default 0
        Stop choosing when the residual trace is at most ``tol`` times the trace.
    scale : "standard", "robust", "rank" or "none", default "standard"
        How features are scaled on the fly: to mean 0 and deviation 1; the same after a clip at 3 robust deviations from
        the median; to their ranks in a sample of rows; or not. With "robust" and "rank" a row far from all others is no
        farther than the ends of each feature.
    metric : "none", "learned", "diagonal" or array-like (p, r), default None
        Linear map of the scaled features in which the kernel measures distances. "learned" finds it, and the
        lengthscale, from the gradients of ridge regressions on a sample of rows, where that lowers the error on
        held-out rows; "diagonal" finds a weight for each feature. None for "learned" with 2,000 rows or more, at
        most 1,000 features, lengthscale "median" and the name of a kernel of a distance; else for "none".
    metric_rank : int, default None
        Largest number of columns of a learned metric; None for p.
    fit_intercept : bool, default True
        Whether to fit an unpenalised constant b.
    random_state : int, default 0
        Seed of every draw: equal seeds, equal bits.
    memory_limit : int or str, default None
        Limit on the memory of all processes together: bytes, or text such as "4GB". None for the memory of this machine
        and, with a client, the limits of its workers. A fit that would need more is refused before it reads anything.
    client : distributed.Client, default None
        Cluster that runs the sweeps; None for threads of this process.
    progress : Progress, default None
        Receiver of progress; see `streamkernel.engine.Progress`.

    Attributes
    ----------
    components_ : (n, p) basis points z_j, in the units of X
    component_indices_ : (n,) their row numbers, in the order of picking
    dual_coef_ : (n,) or (n, d)
    intercept_ : float or (d,)
    alpha_, lengthscale_, kernel_ : ridge, lengthscale and kernel of the fit
    residual_trace_, relative_residual_trace_ : exact certificate ``tr(K - K~)``, and its share of ``tr K``
    n_sweeps_ : passes over the rows
    model_ : RidgeModel, everything that `save` writes

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import KernelRidge
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> y = np.sin(X[:, 0]) + X[:, 1]
    >>> bool(KernelRidge(50).fit(X, y).score(X, y) > 0.99)
    True
    """

    _kind = "ridge"
    _several_targets = True

    @available_if(keeps_sums)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def partial_fit(self, X: Unchecked, y: Unchecked = None, sample_weight: Unchecked = None) -> Self:
        """Fit to a batch of rows, or add one to the fit.

        The first call without a fit is `fit`: its batch gives basis, scaler, kernel and lengthscale, which stay. Later
        calls add their rows, exactly: for this basis the result is the fit to the rows of all batches. Alpha is chosen
        again from the sums of all if it is "gcv", and stays if it is a number or "cv". So the first batch should have
        some thousand rows of every kind, and each should be larger than the basis, as a call costs a decomposition of
        n x n. A warning tells where new rows are far from the basis.

        As scikit-learn has it, a batch that is given twice counts twice. `update` counts rows once: it remembers them
        by their content, those of this method too.

        Parameters
        ----------
        X, y, sample_weight : rows, targets and row weights, as `fit` takes them.

        Raises
        ------
        StreamKernelError
            An error of the parameters, the rows or the machine, as of `fit` and `update`; the estimator is unchanged.
        """
        return self._partly_fitted(X, y, sample_weight)


def has_curves(estimator: Untyped) -> bool:
    """Whether there are probabilities; before a fit, whether alpha was asked to be chosen by held-out rows."""
    if hasattr(estimator, "model_"):
        return bool(estimator.model_.has_probabilities)
    return isinstance(estimator.alpha, str) and estimator.alpha == "cv"


class KernelRidgeClassifier(IndicatorClassifier, RidgeEstimator):
    """Least squares classification: one indicator column per class, all from the same sums; the largest wins.

    Parameters and attributes are those of `KernelRidge`, and ``classes_``: the sorted labels.

    Rows may have several labels: y (m, d), d > 1, has a column for each, with 1 for the rows that have it and 0 for
    others. The fit is that of `KernelRidge` to these numbers, with one alpha for all; a row has a label where its value
    is above 1/2. ``classes_`` is then the list of the classes 0 and 1 of each label, and there are no probabilities.

    Parameters
    ----------
    class_weight : "balanced" or dict, default None
        Weight of each class, by which those of its rows are multiplied: ``(sum of all row weights) / (number of classes
        * sum of those of the class)`` for "balanced", or numbers by label; other classes have weight 1, as all have for
        None. An update keeps the weights that the fit has found.
    """

    _kind = "ridge-classifier"
    _settings_class = RidgeClassifierSettings
    _several_labels = True

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Unchecked = None,
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        alpha: Unchecked = None,
        solver: str = "auto",
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

    @available_if(keeps_sums)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def partial_fit(
        self, X: Unchecked, y: Unchecked = None, classes: Unchecked = None, sample_weight: Unchecked = None
    ) -> Self:
        """Fit to a batch of rows, or add one to the fit, as `KernelRidge.partial_fit`.

        Parameters
        ----------
        X, y, sample_weight : rows, labels and row weights, as `fit` takes them.
        classes : the labels of all batches, for the first call; None for those of its batch. Later calls take the same
            or None.

        Raises
        ------
        ParameterError
            The classes lack a label of the first batch, or are not those of the first call.
        DataError
            A later batch has another label.
        StreamKernelError
            Other errors, as of `fit` and `update`; the estimator is unchanged.
        """
        known = getattr(self, "classes_", None)
        if classes is not None and known is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
            raise ParameterError(
                f"{option('classes')} are not those of the first call ({listed(known)}); leave them out, or fit anew"
            )
        return self._partly_fitted(X, y, sample_weight, classes)

    def decision_function(self, X: Unchecked) -> ArrayOrDask:
        """Values f of the indicators, (m, classes); for two classes the second minus the first, (m,).

        Of several labels ``2 f - 1`` for each, (m, d): the value for it minus that against it.
        """
        model = self._fitted()
        values = self._values(X, model.predictions())
        return 2.0 * values - 1.0 if model.multilabel else self._decisions(values)

    def predict(self, X: Unchecked) -> ArrayOrDask:
        """Labels, (m,), or (m, d) of 0 and 1 for several; a lazy Dask array for Dask, Zarr, xarray or stored rows."""
        model = self._fitted()
        return self._values(X, model.outputs()) if model.multilabel else super().predict(X)

    def __sklearn_tags__(self) -> Untyped:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @available_if(has_curves)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Unchecked) -> ArrayOrDask:
        """Probabilities (m, classes), where alpha was chosen by held-out rows; lazy for rows outside memory.

        ``q_k = 1 / (1 + exp(-(s f_k + t)))`` and ``p_k = q_k / sum q``, whose s and t (Platt 2000) are fitted to rows
        of the validation folds, each with the values f of the fit that left its fold out. Of two classes f is
        `decision_function`, t is 0 and q the probability of the second. All classes share s and t, so that the most
        probable class is the predicted one. Row weights and class weights count.

        Raises
        ------
        AttributeError
            The model has none: alpha was a number or "gcv" (None with fewer than 2,000 rows), too few rows could be
            held out, these do not tell the classes apart, or an update changed alpha or the basis.
        """
        return self._values(X, self._fitted().probabilities(), "probability")
