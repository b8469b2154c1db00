"""The region that holds most rows, on a basis chosen in a few sweeps."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import OutlierMixin

from streamkernel.engine import Progress
from streamkernel.estimators._apart import apart
from streamkernel.estimators.base import PredictingEstimator
from streamkernel.fits.margins.one_class import fit_one_class
from streamkernel.models.margins import OneClassModel
from streamkernel.settings.one_class import OneClassSettings
from streamkernel.type_aliases import ArrayOrDask, Fields, Unchecked, Untyped


class KernelOneClass(OutlierMixin, PredictingEstimator):
    """One-class support vector machine on n chosen rows, with an exact duality gap, on tables of any size.

    Minimises ``1/2 |b|^2 - rho + 1 / (nu sum w) sum_i w_i max(0, rho - g(x_i)^T b)``, g the whitened features of the
    basis: of the rows, by weight, at most the share nu has ``f(x) = g(x)^T b - rho`` below 0, and at least this share
    are support vectors (Schoelkopf et al. 2001, proposition 3). ``f + rho`` is a weighted mean of kernel values at
    the support vectors. scikit-learn's OneClassSVM has the values ``nu m f``.

    Rows are separated from the origin of the features. A kernel with a constant k(x, x), such as the Gaussian one, has
    no row there; the linear kernel does on columns with means of 0, so give it ``scale="none"`` and positive columns.

    Parameters
    ----------
    n_components : int, default None
        Number of basis functions n; None for ``sqrt(m) log m``, at most 1000.
    nu : float, default 0.1
        Largest share of the rows, by weight, that is outside, in (0, 1].
    gap_tol : float, default 0.0001
        The fit ends when the duality gap is at most this share of the objective.
    max_sweeps : int, default 100
        Largest number of sweeps of the solution; a warning tells of a larger gap.
    machine : {"reduced", "full"}, default "reduced"
        As in `KernelSVC`: with "full" all rows are functions, of which the support vectors remain. At least the share
        nu of the rows are, and at most `n_components` (None for 50,000).
    kernel, lengthscale, gamma, degree, coef0, kernel_params, rule, rule_options, tol, scale : as in `Nystroem`
    metric, metric_rank, random_state, memory_limit, client, progress : as in `Nystroem`

    Attributes
    ----------
    offset_ : rho: `decision_function` is `score_samples` less this
    outliers_ : share of the rows of the fit that are outside, by weight
    duality_gap_ : relative duality gap: the objective is at most this share of its size above its minimum
    n_iter_ : sweeps of the solution on all rows
    components_, component_indices_, dual_coef_, intercept_, lengthscale_, kernel_ : as in `KernelRidge`
    residual_trace_, relative_residual_trace_, n_sweeps_, model_

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import KernelOneClass
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> model = KernelOneClass(60, nu=0.05).fit(X)
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]]).tolist()
    [1, -1]
    >>> model.outliers_ <= 0.05
    True
    """

    _kind = "one-class"
    _model = OneClassModel
    _settings_class: ClassVar[type[OneClassSettings]] = OneClassSettings
    _fit = staticmethod(fit_one_class)

    model_: OneClassModel

    def __init__(
        self,
        n_components: int | None = None,
        *,
        nu: float = 0.1,
        gap_tol: float = 1e-4,
        max_sweeps: int = 100,
        machine: str = "reduced",
        kernel: Unchecked = "gaussian",
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        rule: Unchecked = "few-sweep",
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

    def fit(self, X: Unchecked, y: Unchecked = None, sample_weight: Unchecked = None) -> Self:
        """Find the region.

        Parameters
        ----------
        X : (m, p) NumPy, pandas, Dask or Zarr array, xarray Dataset, `Table`, or the path of a store.
        y : ignored, as are targets of a store.
        sample_weight : (m,) row weights, of any of these kinds; see `KernelRidge.fit`.

        Raises
        ------
        StreamKernelError
            An error of the parameters, the data or the machine; see `streamkernel.errors`.
        """
        with apart(self) as new:
            settings: Unchecked = new._settings()
            table, session, limits = new._opened(X, sample_weight)
            new._adopt(new._fit(table, settings, session, estimator=new._kind, **limits))
        return self

    def _adopt(self, model: Any) -> Self:
        super()._adopt(model)
        solution, threshold = model.record.solution, model.record.threshold
        self.offset_, self.outliers_ = threshold.rho, threshold.outliers
        self.duality_gap_, self.n_iter_ = solution.gap, solution.iterations
        return self

    def decision_function(self, X: Unchecked) -> ArrayOrDask:
        """f (m,), below 0 for outliers; a lazy Dask array for Dask, Zarr, xarray or stored rows."""
        return self._values(X, self._fitted().outputs(), "decision")

    def score_samples(self, X: Unchecked) -> ArrayOrDask:
        """``f + rho`` (m,), the larger the more usual; lazy as in `decision_function`."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Unchecked) -> ArrayOrDask:
        """1 for rows inside and -1 for outliers (m,), int64; lazy as in `decision_function`."""
        return self._values(X, self._fitted().outputs(), "prediction")

    def fit_predict(self, X: Unchecked, y: Unchecked = None, sample_weight: Unchecked = None) -> ArrayOrDask:
        """Fit, then `predict` of the same rows."""
        return self.fit(X, y, sample_weight).predict(X)
