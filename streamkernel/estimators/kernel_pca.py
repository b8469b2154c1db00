"""Kernel principal components of any number of rows, from the sums of one sweep."""

from __future__ import annotations

from typing import Any, Self

from streamkernel.bounds import CompressionBound
from streamkernel.engine import Progress
from streamkernel.errors import ShapeError
from streamkernel.estimators._apart import apart
from streamkernel.estimators._transformer import BasisTransformer
from streamkernel.estimators.base import is_array_like, values_later, values_now
from streamkernel.fits.transformer import fit_kernel_pca
from streamkernel.models.transformers import KernelPCAModel
from streamkernel.settings.checks import checked_number, checked_whole
from streamkernel.settings.transformers import KernelPCASettings
from streamkernel.table import open_table
from streamkernel.type_aliases import ArrayOrDask, Fields, Unchecked, Untyped


class KernelPCA(BasisTransformer):
    """Principal components in the kernel's feature space: leading eigenvectors of ``C K~ C``, ``C = I - 1 1^T / m``.

    K~ is the Nystroem approximation of the kernel matrix on a basis of n rows, chosen in a few sweeps; one more sweep
    gives its eigenvectors, for any m (Schoelkopf, Smola & Mueller 1998; Hussain & Shawe-Taylor, section 2.1). With all
    rows as basis it is exact. The sign of a component makes its largest value at a basis point positive.

    With ``fit_inverse_transform`` a map from components back to rows is learned, as scikit-learn does (Bakir, Weston &
    Schoelkopf 2004): the kernel ridge regression ``x(t) = c + k(t, T_Z) A`` of the rows on their components, with
    the components T_Z of the basis points as its basis, the same kernel, and c the means of the columns where these are
    scaled, else 0. One sweep more gives its sums.

    With ``sparse`` it is sparse kernel PCA: matching pursuit chooses the basis. Each pick is the row with the largest
    Rayleigh quotient ``e_i^T K^2 e_i / e_i^T K e_i`` of the residual kernel matrix, which is then deflated (Hussain &
    Shawe-Taylor, Algorithm 1). Out of core: the quotients of a shared pool of candidates are exact over all rows, and
    one sweep serves several picks. The subspace, and so the components, depends only on the set of chosen rows, not on
    the rule or the order of picking. It is therefore a compression scheme, and `bound_` is an upper bound of the
    expected residual at a new row.

    Parameters
    ----------
    n_components : int, default None
        Number of components r; None for all that have a positive eigenvalue.
    basis_size : int, default None
        Number of basis functions n, at least r; None for ``sqrt(m) log m``, at most 1000 (or r, where that is more).
    kernel, lengthscale, gamma, degree, coef0, kernel_params : as in `KernelRidge`
        A lengthscale of "auto" needs targets, and is refused.
    sparse : int, "bound" or None, default None
        Number of basis functions that matching pursuit chooses, in place of ``basis_size``. Or "bound": choose
        ``basis_size`` functions, then keep those up to the minimum of `bound_`, but at least n_components. The default
        rule becomes "sgma" with shared pools (``rule_options``: picks per sweep, candidates per pick, pool).
        rule="matching-pursuit-kpca" is the paper's, with all rows as candidates, for rows whose kernel matrix fits in
        memory. Any other rule is a compression scheme too.
    fit_inverse_transform : bool, default False
        Whether to learn the inverse map, for `inverse_transform`.
    alpha : float, default 1.0
        Ridge of the inverse map, on the diagonal, as scikit-learn's.
    rule, rule_options, tol, scale, metric, metric_rank : as in `Nystroem`
    random_state, memory_limit, client, progress : as in `Nystroem`

    Attributes
    ----------
    eigenvalues_ : (r,) eigenvalues of ``C K~ C``, largest first
    residual_trace_ : upper bound of the part of ``tr C K C`` that the r components leave
    relative_residual_trace_ : its share of ``tr K``
    components_, component_indices_ : the basis, as in `Nystroem`
    bound_ : CompressionBound of the residual of a new row outside the span of the first t functions, t = 1 .. n, with
        probability .95 (Theorem 2); None for kernels whose k(x, x) has no bound, and for points that are not rows
    eigen_ : FactorEigen, the decomposition that `transform` uses
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
    _settings_class = KernelPCASettings

    def __init__(
        self,
        n_components: int | None = None,
        *,
        basis_size: int | None = None,
        sparse: Any = None,
        kernel: Unchecked = "gaussian",
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        fit_inverse_transform: bool = False,
        alpha: float = 1.0,
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
        """Choose the basis and decompose.

        Parameters
        ----------
        X : (m, p) NumPy, pandas, Dask or Zarr array, xarray Dataset, `Table`, or the path of a store.
        y : ignored.
        sample_weight : (m,) row weights, of any of these kinds; see `KernelRidge.fit`.

        Raises
        ------
        StreamKernelError
            An error of the parameters, the data or the machine; see `streamkernel.errors`.
        """
        with apart(self) as new:
            settings = new._settings()
            table, session, limits = new._opened(X, sample_weight)
            new._adopt(fit_kernel_pca(table, settings, session, **limits))
        return self

    def _adopt(self, model: KernelPCAModel) -> Self:
        super()._adopt(model)
        self.eigen_ = model.eigen
        self.eigenvalues_ = self.eigen_.values
        # The residual of the components replaces that of the basis.
        self.residual_trace_ = model.record.eigen.residual_trace
        self.relative_residual_trace_ = model.record.eigen.relative_residual_trace
        return self

    @property
    def bound_(self) -> CompressionBound | None:
        """Theorem 2 along the path of picks.

        It holds for independent rows, and a kernel that was not fitted to them: lengthscale and scale are given.
        """
        bound: CompressionBound | None = self._fitted().bound
        return bound

    def inverse_transform(self, X: Unchecked) -> ArrayOrDask:
        """Rows (m, p) in the units of the features, for components X (m, r); lazy for components outside memory.

        Raises
        ------
        ParameterError
            The model was fitted without ``fit_inverse_transform=True``.
        ShapeError
            X has another number of columns than there are components.
        """
        work = self._fitted().inverse()
        table = open_table(X).without_targets()
        if table.n_features != self._n_features_out:
            raise ShapeError(
                f"X has {table.n_features} columns, and the model {self._n_features_out} components; give what "
                "transform returned"
            )
        return (values_now if is_array_like(X) else values_later)(work, table, "prediction")

    def _settings(self) -> KernelPCASettings:
        for name in ("n_components", "basis_size"):
            if getattr(self, name) is not None:
                checked_whole(name, getattr(self, name), 1)
        checked_number("alpha", self.alpha, least=0.0, exclusive=True)
        return KernelPCASettings.of_estimator(self.get_params(deep=False))

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
