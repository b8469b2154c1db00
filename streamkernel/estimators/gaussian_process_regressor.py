"""Gaussian process regression on a basis chosen in a few sweeps."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from streamkernel.engine import Progress
from streamkernel.errors import ParameterError
from streamkernel.estimators._regressor import Regressor
from streamkernel.estimators._updating import UpdatingEstimator
from streamkernel.estimators.base import is_array_like
from streamkernel.fits.gaussian.gaussian import fit_gaussian
from streamkernel.models.gaussian import GaussianModel
from streamkernel.settings.checks import checked_whole
from streamkernel.settings.gaussian import GaussianSettings
from streamkernel.type_aliases import AnyArray, ArrayOrDask, Fields, Unchecked, Untyped
from streamkernel.wording import option


class GaussianProcessRegressor(Regressor, UpdatingEstimator):
    """Sparse Gaussian process regression: ``y = c + f(x) + noise``, ``f ~ GP(0, s k)``, on n chosen rows.

    The posterior follows from the sums of one sweep. The approximations differ in their model of cov(y | f at the
    basis) (Tresp 2001, appendix, eq. (11)): a constant (DTC, the projected process), a diagonal (FITC), or blocks of
    rows (PITC, which is the Bayesian committee machine with the basis as its query points). Hyper-parameters maximise
    the evidence.

    Parameters
    ----------
    n_components : int, default None
        Number of basis functions n; None for ``sqrt(m) log m``, at most 1000.
    kernel, gamma, degree, coef0, kernel_params : as in `KernelRidge`
        Options of the unit kernel k.
    lengthscale : "evidence", "median", "auto", float or sequence of floats, default "evidence"
        "evidence" maximises the evidence on a sample of rows; other values are as in `KernelRidge`, and stay fixed.
    ard : bool, default False
        Whether "evidence" finds a lengthscale for each feature.
    signal_variance : "evidence" or float, default "evidence"
        Variance s of f, in squared units of y.
    noise_variance : "evidence" or float, default "evidence"
        Noise variance, in squared units of y.
    tune : "sample", "full" or "none", default "sample"
        "sample" maximises the evidence on some thousands of rows. "full" continues from there over all rows, with two
        sweeps per step. "none" does neither: a lengthscale of "evidence" is then the median distance; signal and noise
        still follow from the stored sums, or with `approximation` "fitc" and "pitc" from the sample.
    approximation : "fitc", "dtc" or "pitc", default "fitc"
        "fitc" gives less weight to rows that the basis explains badly, and its intervals were better calibrated in
        tests; "dtc" costs half the work of the final sweep, and its sums are valid for every signal and noise variance.
    block_size : int, default 1000
        Number of rows of a block, for "pitc": a parameter of the model, not of the machine.
    partition : "rows" or "cells", default "rows"
        Rows of a block: "rows" in the stored order, or "cells" of rows near a common centre.
    rule, objective, rule_options, tol, scale, metric, metric_rank : as in `KernelRidge`
    random_state, memory_limit, client, progress : as in `KernelRidge`
    fit_intercept : bool, default True
        Whether the prior mean c is the mean of y, or 0.

    Attributes
    ----------
    components_ : (n, p) basis points, in the units of X
    component_indices_ : (n,) their row numbers, in the order of picking
    dual_coef_ : (n,) or (n, d); intercept_ : float or (d,)
    lengthscale_, kernel_ : lengthscale and kernel of the fit
    signal_variance_, noise_variance_ : (d,)
    log_marginal_likelihood_value_ : the evidence of the approximation, all targets together, in nats
    evidence_lower_bound_ : the variational bound on the exact evidence (Titsias 2009), for "dtc", else None
    effective_df_ : (d,) effective degrees of freedom, ``sum_j s h_j / (1 + s h_j)``
    residual_trace_, relative_residual_trace_ : exact certificate ``tr(K - K~)``, and its share of ``tr K``
    n_sweeps_ : passes over the rows
    model_ : GaussianModel, everything that `save` writes

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import GaussianProcessRegressor
    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-3, 3, (500, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * generator.standard_normal(500)
    >>> mean, std = GaussianProcessRegressor(30).fit(X, y).predict([[0.0], [30.0]], return_std=True)
    >>> bool(abs(mean[0]) < 0.1), bool(0.09 < std[0] < 0.12), bool(std[1] > 0.5)
    (True, True, True)
    """

    _kind = "gp"
    _several_targets = True
    _model = GaussianModel
    _settings_class = GaussianSettings
    _fit = staticmethod(fit_gaussian)

    model_: GaussianModel

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
        noise_variance: Unchecked = "evidence",
        tune: str = "sample",
        approximation: str = "fitc",
        block_size: int = 1000,
        partition: str = "rows",
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
        solution = model.record.solution
        self.signal_variance_ = model.arrays["signal_variance"]
        self.noise_variance_ = model.arrays["noise_variance"]
        self.log_marginal_likelihood_value_ = solution.log_evidence
        self.evidence_lower_bound_ = solution.bound
        self.effective_df_ = np.asarray(solution.effective_df)
        return self

    def predict(
        self, X: Unchecked, return_std: bool = False, return_cov: bool = False, *, diagonal: Unchecked = None
    ) -> ArrayOrDask:
        """Predicted targets, as scikit-learn's regressor of the same name.

        Parameters
        ----------
        X : (q, p)
        return_std : also return standard deviations of y, noise included.
        return_cov : also return the covariance of y at the rows of X; for rows in memory.
        diagonal : (q,) values k(x, x) of the rows, for `return_std` with a precomputed kernel. The square matrix of the
            fit, or a slice of its table, has them.

        Returns
        -------
        mean : (q,) or (q, d) float64; a lazy Dask array for Dask, Zarr, xarray or stored rows.
        std : as `mean`, if `return_std`.
        cov : (q, q), or (q, q, d), if `return_cov`.
        """
        model = self._fitted()
        if return_std and return_cov:
            raise ParameterError("return_std and return_cov exclude each other; ask for one of them")
        if return_cov:
            return self._values(X, model.predictions()), self._covariance(X)
        if not return_std:
            return self._values(X, model.predictions())
        work = model.predictions(std=True)
        if not is_array_like(X):
            return self._values(X, work, "prediction", diagonal), self._values(X, work, "std", diagonal)
        # For rows in memory, one computation gives both.
        moments = work.moments(self._rows(X, diagonal))
        mean, std = moments[0], np.sqrt(moments[1])
        return (mean[:, 0], std[:, 0]) if work.flat and mean.shape[1] == 1 else (mean, std)

    def sample_y(
        self, X: Unchecked, n_samples: int = 1, random_state: Unchecked = 0, *, noise: bool = True
    ) -> AnyArray:
        """Draws from the posterior at a few rows, as scikit-learn's regressor of the same name.

        Parameters
        ----------
        X : (q, p) rows in memory; the work grows with ``q^3``.
        n_samples : number r of draws.
        random_state : int, RandomState or None; equal seeds give equal draws.
        noise : True to draw targets, whose covariance is that of ``predict(X, return_cov=True)``; False to draw f.

        Returns
        -------
        draws : (q, r), or (q, d, r) where predictions have d columns.

        Raises
        ------
        ParameterError
            `n_samples` is no whole number > 0, or the rows are not in memory.
        """
        model = self._fitted()
        self._refuse_matrix()
        checked_whole("n_samples", n_samples, 1)
        if not is_array_like(X):
            raise ParameterError("sample_y is for rows in memory; give a NumPy array of a few thousand rows")
        rows, work = self._rows(X), model.predictions(latent=not noise)
        normal = check_random_state(random_state).standard_normal((len(rows), model.target_count, int(n_samples)))
        draws: AnyArray = work.samples(rows, normal)
        return draws[:, 0] if model.flat and model.target_count == 1 else draws

    def _covariance(self, X: Unchecked) -> Any:
        if not is_array_like(X):
            raise ParameterError("return_cov is for rows in memory; give a NumPy array of a few thousand rows")
        model = self._fitted()
        self._refuse_matrix()
        cov = model.predictions().covariance(self._rows(X))
        return cov[:, :, 0] if model.flat and cov.shape[2] == 1 else cov

    def _refuse_matrix(self) -> None:
        """Refuse what needs kernel values of new rows with each other, which a precomputed kernel has not."""
        if self.model_.of_matrix:
            raise ParameterError(
                "the kernel is precomputed, and kernel values of new rows with each other, which covariances and draws "
                f"need, are not among K(new rows, rows of the fit); ask for {option('return_std', True)}"
            )

    def _rows(self, X: Unchecked, diagonal: Unchecked = None) -> Any:
        """Checked rows in memory, scaled as those of the fit."""
        table = self._here(X, diagonal)
        return table.read(0, table.n_rows).X
