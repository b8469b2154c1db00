"""Kernel matching pursuit regression: few functions of a large dictionary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.base import RegressorMixin

from streamkernel.estimators.pursuit_estimator import PursuitEstimator

__all__ = ["KernelMatchingPursuit"]


class KernelMatchingPursuit(RegressorMixin, PursuitEstimator):
    """Sparse regression ``f(x) = sum_j a_j k(x, z_j) + b`` by least squares on functions that are picked greedily.

    Kernel matching pursuit (Vincent & Bengio 2002) over sweeps: each draws candidates, sums what is needed to compare
    them, and picks several (Popovici, Bengio & Thiran 2005 draw a fresh sub-pool for each pick: ``pool="split"``).
    There is no ridge; what keeps it from fitting noise is how few functions it has.

    Parameters
    ----------
    n_components : int, default None
        Most terms; None for ``sqrt(m) log m``, at most 300.
    kernel : str, Kernel or dict, default "gaussian"
        As of `KernelRidge`, or "sigmoid", which is not positive definite: any function of two rows will do.
    lengthscale, gamma, degree, coef0, kernel_params : as of `KernelRidge`
    variant : "pre-fitting", "back-fitting" or "basic", default "pre-fitting"
        Pre-fitting picks what leaves the least once all coefficients are fitted again; back-fitting what is nearest to
        the residual, then fits all again; basic only adds the pick, and may pick one again.
    shrinkage : float in (0, 1], default 1
        Share of each step that basic takes.
    pool : "shared", "split" or "full", default "shared"
        Whether all candidates of a sweep compete at each of its picks, or each pick has a sub-pool of its own (the
        paper's stochastic pursuit); or every row is a candidate, in one sweep, for a few thousand rows.
    draw : "uniform" or "residual", default "uniform"
        How candidates are drawn: as in the paper, or by what the model leaves of them.
    candidates : int, default None
        For each pick; None for as many as `eps` and `quantile` ask for (split), or for 16 and in small sweeps more.
    picks : int, default None
        In a sweep; None for a 40th of the terms, at least 5.
    eps, quantile : float, default 0.05 and 0.95
        With "split" a pick is among the best 1 - quantile of all rows with probability 1 - eps: 59 candidates.
    validation : "auto", float in [0, 1), (X, y), Table, the path of a store, or None, default "auto"
        Share of the rows that is held out and watched in the same sweeps, or other rows, of which there are sweeps of
        their own; the size that has the least error there is kept. "auto": a tenth of the rows, of fewer than 500
        rows 50 but at most a quarter, none where fewer than 20 differ. Equal rows stay together. None or 0: no row is
        held out.
    patience : int, default None
        End once so many terms have not bettered that error.
    choose_by : "loss" or "error", default "loss"
        Of classes: whether the size is that of the least loss on these rows, or of the fewest errors.
    bound_gamma : float, default None
        Of one target: rows that it is missed by more than this are counted, for Theorem 3 of Hussain & Shawe-Taylor
        (`model_.bound`), which holds for a gamma named before the data were seen. Takes a sweep more. Of two classes
        there is a bound always, on wrong ones.
    tol : float, default 0
        End once the residual sum of squares is ``tol`` times what a constant leaves.
    scale, fit_intercept, random_state, memory_limit, client, progress : as of `KernelRidge`

    Attributes
    ----------
    active_set_ : (terms,) row numbers of the functions, in the order of picking; basic may have one twice
    path_ : PursuitPath, what every number of terms leaves on the rows fitted, and on those held out
    components_ : (n, p) the functions' points, in the units of X; component_indices_ : (n,) their row numbers
    dual_coef_ : (n,) or (n, d); intercept_ : float or (d,)
    lengthscale_, kernel_ : what was chosen
    residual_trace_, relative_residual_trace_ : certificate ``tr(K - K~)`` over the rows fitted; where the kernel is not
        positive definite all of the trace: nothing is certain
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

    def predict(self, X: Any) -> Any:
        """Predicted targets, (m,) or (m, d) float64; a lazy Dask array for Dask, Zarr, xarray or stored rows."""
        return self._values(X, self._fitted().predictions())

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Predictions by the first 1, 2, ... terms, each as `predict` gives them.

        Of least squares variants each is the least squares fit to these functions alone.
        """
        return self._staged(X, argmax=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
