"""Sparse kernel canonical correlations of two views of any number of rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from streamkernel.bounds import MatchingPursuitBound
from streamkernel.byte_counts import parse_bytes
from streamkernel.engine import Progress, resident_bytes
from streamkernel.errors import EmptyDataError, ParameterError, ShapeMismatchError
from streamkernel.estimators._apart import apart
from streamkernel.estimators.base import (
    SavedEstimator,
    checked,
    in_order,
    is_array_like,
    names_of,
    values_later,
    values_now,
    warn_of_names,
)
from streamkernel.fits.cca.kernel_cca import fit_cca
from streamkernel.fits.cca.kernel_cca_plan import CCASettings
from streamkernel.fits.cca.kernel_cca_views import paired_table
from streamkernel.models.kernel_cca import KernelCCAModel
from streamkernel.pairs import as_csr
from streamkernel.settings.transformers import KernelCCASettings
from streamkernel.table import open_table
from streamkernel.table.columns import frame_names, with_names
from streamkernel.type_aliases import ArrayOrDask, Unchecked, Untyped


class KernelCCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavedEstimator):
    """Sparse kernel canonical correlation analysis: functions of two views whose values correlate the most.

    Matching pursuit chooses the rows that become basis functions of both views. Each pick is the row with the largest
    cross quotient ``<R^x_i, R^y_i> / (|R^x_i| |R^y_i|)`` of the two residual kernel matrices ``R^x`` and ``R^y``; then
    both are deflated. Regularised canonical correlations are computed on the whitened, centred features of the chosen
    rows (Hussain & Shawe-Taylor, section 4). Out of core: one sweep scores a pool of candidates exactly and serves
    several picks; a last sweep gives the sums for the correlations.

    Parameters
    ----------
    n_components : int, default 2
        Pairs of canonical variates.
    basis_size : int, default None
        Number n of rows that become functions of both views; None for 100, or for all rows where there are fewer.
    view_columns : two lists of columns, default None
        Columns of X of the first and of the second view, by name or position. None where the second view is given to
        `fit`, or is the targets of a stored table.
    kernel, lengthscale, gamma, degree, coef0, kernel_params : as in `KernelRidge`, for both views
        A tuple of two has one for each view. Each view has its own median lengthscale; "auto" needs targets, and is
        refused.
    regularization : float, default 1e-3
        Ridge r of either view, as a share of the trace of its kernel matrix: ``G^T G + r I``, and ``|R_i|^2 + r S_ii``
        in the quotient. Without it, residuals that are almost zero would have the largest quotients. 0 is the paper's
        method.
    pool : "shared", "split" or "all", default "shared"
        "shared": all candidates of a sweep compete at each of its picks. "split": each pick has its own candidates.
        "all": every row is a candidate at every pick, as in the paper, for a few thousand rows at most.
    picks, candidates : int, default None
        Picks per sweep, None for ten or more; candidates per pick, None for 20 in a shared pool and 59 in a split one.
    bound_gamma : float, default None
        The gamma of Theorem 4, which must be fixed before the data are seen: variates of a new row are *apart* when
        they differ by more than this, in units of their deviation. None for no bound, which saves a sweep.
    delta : float, default 0.05
        Probability that the bound fails.
    scale, random_state, memory_limit, client, progress : as in `Nystroem`

    Attributes
    ----------
    correlations_ : (r,) correlations of the variates over the rows of the fit, in the order of the singular values
    singular_values_ : (r,) correlations reduced by the ridge, descending
    components_, components_y_ : (n, p) and (n, q) basis points, in the units of the views
    component_indices_ : (n,) their row numbers, in the order of picking
    quotients_ : (n,) cross quotient of each pick, at the time of picking
    residual_traces_ : (2,) exact certificates ``tr(K_v - G_v G_v^T)`` of the views
    bound_ : MatchingPursuitBound along the first 1 .. n functions, for the first pair of variates; None without gamma
    bases_, kernels_, lengthscales_, n_sweeps_, n_features_in_
    model_ : everything that `save` writes

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import KernelCCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 2))
    >>> Y = np.c_[np.sin(X[:, 0]), rng.standard_normal(500)]
    >>> bool(KernelCCA(1, basis_size=30).fit(X, Y).correlations_[0] > 0.9)
    True
    """

    _kind = KernelCCAModel.KIND
    _model = KernelCCAModel
    _settings_class = KernelCCASettings

    def __init__(
        self,
        n_components: int = 2,
        *,
        basis_size: int | None = None,
        view_columns: Unchecked = None,
        kernel: Unchecked = "gaussian",
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Unchecked = None,
        regularization: float = 1e-3,
        pool: str = "shared",
        picks: int | None = None,
        candidates: int | None = None,
        bound_gamma: float | None = None,
        delta: float = 0.05,
        scale: str = "standard",
        random_state: Unchecked = 0,
        memory_limit: Unchecked = None,
        client: Untyped = None,
        progress: Progress | None = None,
    ) -> None:
        self._set_parameters(locals())

    def fit(self, X: Unchecked, y: Unchecked = None, sample_weight: Unchecked = None) -> Self:
        """Choose the functions and decompose.

        Parameters
        ----------
        X : (m, p) NumPy, pandas, Dask or Zarr array, xarray Dataset, `Table`, or the path of a store.
        y : (m, q) or (m,) the second view, of any of these kinds, aligned with X; None where X contains it.
        sample_weight : (m,) row weights, of any of these kinds; see `KernelRidge.fit`.

        Raises
        ------
        StreamKernelError
            An error of the parameters, the data or the machine; see `streamkernel.errors`.
        """
        with apart(self) as new:
            parameters = new.get_params(deep=False)
            CCASettings.from_parameters(parameters, None)
            limit = parse_bytes(new.memory_limit)
            names, second_names = None, frame_names(y, "the second view")
            if is_array_like(X):
                X, y = new._validated(X, y)
                names = names_of(new)
            before = resident_bytes()
            paired = paired_table(X, y, new.view_columns, names, second_names, weights=sample_weight)
            if paired.table.n_rows < 2:
                raise EmptyDataError("n_samples = 1: correlations need at least two rows")
            settings = CCASettings.from_parameters(parameters, paired.table.counted)
            new._adopt(fit_cca(paired, settings, new._session(), memory_limit=limit, driver_bytes=before))
        return self

    def _settings(self) -> KernelCCASettings:
        """The settings of a fit to one stored table, as jobs have them."""
        return KernelCCASettings.of_estimator(self.get_params(deep=False))

    def _validated(self, X: Unchecked, y: Unchecked) -> tuple[Any, Any]:
        """X as an array, and y too where it lies in memory."""
        frame_names(X)
        if self.view_columns is None and (y is None or is_array_like(y)):
            arrays: tuple[Any, Any] = checked(self, X, y, multi_output=True, y_numeric=True, ensure_min_samples=2)
            return arrays
        return checked(self, X, ensure_min_samples=2), y

    def _adopt(self, model: Any) -> Self:
        arrays = super()._adopt(model).model_.arrays
        self.bases_ = model.bases
        self.kernels_ = tuple(basis.kernel for basis in model.bases)
        self.lengthscales_ = tuple(getattr(kernel, "lengthscale", None) for kernel in self.kernels_)
        self.components_, self.components_y_ = (
            as_csr(model.points_of(view), len(model.record.views[view].names))
            if model.is_sparse(view)
            else model.points_of(view)
            for view in range(2)
        )
        self.correlations_, self.singular_values_ = arrays["correlations"], arrays["singular_values"]
        self.quotients_ = arrays["gains"]
        self.residual_traces_ = np.array([view.certificate.residual_trace for view in model.record.views])
        return self

    @property
    def bound_(self) -> MatchingPursuitBound | None:
        """Theorem 4, for two views' dimensions; `says_nothing` where it is vacuous at every size."""
        bound: MatchingPursuitBound | None = self._fitted().bound
        return bound

    def transform(self, X: Unchecked, y: Unchecked = None) -> ArrayOrDask:
        """Canonical variates of the first view, (m, r); a pair of both views' variates where y is given.

        Computed now for rows in memory, a lazy Dask array otherwise. Where the views are columns of one input, X holds
        both; `canonical_variates` then gives the variates of both.
        """
        self._fitted()
        first = self._variates(X, 0)
        return first if y is None else _aligned(first, self._variates(y, 1))

    def canonical_variates(self, X: Unchecked, y: Unchecked = None) -> tuple[Any, Any]:
        """Variates of both views, (m, r) each, of mean 0 and variance 1 over the rows of the fit.

        Parameters
        ----------
        X, y : as `fit` was given them.
        """
        if self._fitted().from_columns:
            if y is not None:
                raise ParameterError("both views are columns of X; leave y out")
            return self._variates(X, 0), self._variates(X, 1)
        return _aligned(self._variates(X, 0), self._variates(X if y is None else y, 1, of_targets=y is None))

    def _variates(self, X: Unchecked, view: int, *, of_targets: bool = False) -> ArrayOrDask:
        """The variates of one view for the rows of X, or for its targets."""
        work = self.model_.variates(view, of_targets=of_targets)
        if not is_array_like(X):
            table = open_table(X, sparse=True)
            table = warn_of_names(self, self.model_.columns_of(0 if of_targets else view), table)
            return values_later(work, self.model_.rows_of(table, view, of_targets=of_targets), "variates")
        known, names = self.model_.columns_of(view), frame_names(X)
        if view == 0 or self.model_.from_columns:
            table = self._in_memory(X, known, known.what)
        else:
            X = in_order(X, known, known.what)
            X = np.reshape(X, (-1, 1)) if np.ndim(X) == 1 else X
            table = with_names(open_table(X), known.names if names and known.named else names)
        return values_now(work, self.model_.rows_of(table, view, of_targets=of_targets), "variates")

    @property
    def _n_features_out(self) -> int:
        return len(self.correlations_)

    def __sklearn_tags__(self) -> Untyped:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.view_columns is None
        tags.target_tags.multi_output = True
        return tags


def _aligned(first: Unchecked, second: Unchecked) -> tuple[Any, Any]:
    """Return both, after a check that they have as many rows."""
    if len(first) != len(second):
        raise ShapeMismatchError(f"X has {len(first)} rows and y has {len(second)}; give the same rows of both views")
    return first, second
