"""Kernel principal components of any number of rows, from the sums of one sweep."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from streamkernel.engine import Progress
from streamkernel.errors import ParameterError, warn_user
from streamkernel.estimators.basis_estimator import BasisTransformer
from streamkernel.estimators.transformers import KernelPCAModel
from streamkernel.factors import FactorEigen, FeatureRows
from streamkernel.reductions import FeatureSums

__all__ = ["KernelPCA"]


class KernelPCA(BasisTransformer):
    """Principal components in the kernel's feature space: leading eigenvectors of ``C K~ C``, ``C = I - 1 1^T / m``.

    K~ is the Nystroem approximation of the kernel matrix on a basis of n rows, chosen in a few sweeps; one sweep more
    gives its eigenvectors, whatever m is (Schoelkopf, Smola & Mueller 1998; Hussain & Shawe-Taylor, section 2.1). With
    all rows as basis it is exact. The sign of a component is that for which its largest value at a basis point is
    positive. There is no inverse map.

    Parameters
    ----------
    n_components : int, default None
        Number of components r; None for all that have a positive eigenvalue.
    basis_size : int, default None
        Number of basis functions n, at least r; None for ``sqrt(m) log m``, at most 1000 (or r, where that is more).
    kernel, lengthscale, gamma, degree, coef0, kernel_params : as of `KernelRidge`
        A lengthscale of "auto" takes targets, and is refused.
    rule, rule_options, tol, scale, random_state, memory_limit, client, progress : as of `Nystroem`

    Attributes
    ----------
    eigenvalues_ : (r,) of ``C K~ C``, largest first
    residual_trace_ : upper bound of what the r components leave of ``tr C K C``
    relative_residual_trace_ : its share of ``tr K``
    components_, component_indices_ : the basis, as of `Nystroem`
    eigen_ : FactorEigen, from which `transform` is made
    basis_, scaler_, kernel_, lengthscale_, n_sweeps_, n_features_in_
    model_ : everything that `save` writes

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import KernelPCA
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> KernelPCA(3, basis_size=50).fit_transform(X).shape
    (500, 3)
    """

    _kind = KernelPCAModel.KIND
    _model = KernelPCAModel

    def __init__(
        self,
        n_components: int | None = None,
        *,
        basis_size: int | None = None,
        kernel: Any = "gaussian",
        lengthscale: Any = "median",
        gamma: Any = None,
        degree: Any = None,
        coef0: Any = None,
        kernel_params: dict[str, Any] | None = None,
        rule: Any = "few-sweep",
        rule_options: dict[str, Any] | None = None,
        tol: float = 0.0,
        scale: str = "standard",
        random_state: Any = 0,
        memory_limit: Any = None,
        client: Any = None,
        progress: Progress | None = None,
    ) -> None:
        self.n_components = n_components
        self.basis_size = basis_size
        self.kernel = kernel
        self.lengthscale = lengthscale
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.rule = rule
        self.rule_options = rule_options
        self.tol = tol
        self.scale = scale
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.client = client
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the basis and decompose.

        Parameters
        ----------
        X : (m, p) NumPy, pandas, Dask or Zarr array, xarray Dataset, `Table`, or the path of a store.
        y : not looked at.

        Raises
        ------
        StreamKernelError
            Whatever is wrong with parameters, data or machine; see `streamkernel.errors`.
        """
        wanted = self._checked_components()

        def decomposed(rows: FeatureRows, sums: FeatureSums) -> FactorEigen:
            return FactorEigen.of(rows.features, sums, count=wanted, centred=True)

        found = self._fit_basis(X, self.basis_size, decomposed, rounding=0.0, size="basis_size", at_least=wanted or 1)
        model = KernelPCAModel.of(found.solved, found.config(self._kind), found.arrays(), wanted)
        self._adopt(model.with_basis(found.chosen.selection.basis))
        if wanted is not None and len(self.eigenvalues_) < wanted:
            warn_user(
                f"only {len(self.eigenvalues_)} of {wanted} components have an eigenvalue above rounding; the others "
                "were left out"
            )
        return self

    def _adopt(self, model: KernelPCAModel) -> Self:
        super()._adopt(model)
        self.eigen_ = model.eigen
        self.eigenvalues_ = self.eigen_.values
        # Of the components, no longer of the basis alone.
        self.residual_trace_ = model.config["eigen"]["residual_trace"]
        self.relative_residual_trace_ = model.config["eigen"]["relative_residual_trace"]
        return self

    def _checked_components(self) -> int | None:
        r, n = self.n_components, self.basis_size
        for name, value in (("n_components", r), ("basis_size", n)):
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
            if value is not None and (not whole or value <= 0):
                raise ParameterError(f"{name} must be a whole number > 0, not {value!r}")
        if r is not None and n is not None and r > n:
            raise ParameterError(f"{r} components of a basis of {n}: give basis_size >= n_components")
        return r

    def transform(self, X: Any) -> Any:
        """Components (m, r) float64; a lazy Dask array for Dask, Zarr, xarray or stored rows."""
        return self._transformed(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
