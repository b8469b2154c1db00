"""Whitened features on a basis chosen in a few sweeps, as a scikit-learn transformer."""

from __future__ import annotations

from typing import Self

from streamkernel.engine import Progress
from streamkernel.estimators._apart import apart
from streamkernel.estimators._transformer import BasisTransformer
from streamkernel.fits.transformer import fit_nystroem
from streamkernel.models.transformers import NystroemModel
from streamkernel.type_aliases import Fields, Unchecked, Untyped


class Nystroem(BasisTransformer):
    """Features ``G = k(X, Z) L^-T``, ``L L^T = k(Z, Z)``: ``G G^T`` is the Nystroem approximation of the kernel matrix.

    Any linear method on G is the kernel method on n chosen rows Z (Williams & Seeger 2001; Smola & Schoelkopf 2000,
    section 3). scikit-learn's transformer of the same name whitens by the symmetric root of ``k(Z, Z)``: the features
    differ by a rotation, but methods that do not depend on a rotation give the same result.

    Parameters
    ----------
    n_components : int, default None
        Number of basis functions n; None for ``sqrt(m) log m``, at most 1000.
    kernel, lengthscale, gamma, degree, coef0, kernel_params : as in `KernelRidge`
        A lengthscale of "auto" needs targets, and is refused.
    rule : str or Rule, default "few-sweep"
        Rule that chooses the basis; targets are ignored.
    rule_options : dict
        Further options of the rule; see `streamkernel.selection.options_of`.
    tol : float, default 0
        Stop choosing when the residual trace is at most ``tol`` times the trace.
    scale : "standard", "robust", "rank" or "none", default "standard"
        How columns are scaled on the fly; see `KernelRidge`.
    metric : "none" or array-like (p, r), default "none"
        Linear map of the scaled columns in which the kernel measures distances; there are no targets to learn one from.
    metric_rank : None
        Only a learned metric has a rank.
    random_state : int, default 0
        Seed of every draw: equal seeds, equal bits.
    memory_limit : int or str, default None
        Limit on the memory of all processes together; a fit that would need more is refused before it reads anything.
    client : distributed.Client, default None
        Cluster that runs the sweeps; None for threads of this process.
    progress : Progress, default None
        Receiver of progress.

    Attributes
    ----------
    components_ : (n, p) basis points, in the units of X
    component_indices_ : (n,) their row numbers, in the order of picking
    normalization_ : (n, n), ``L^-1``: the features are ``k(X, Z) normalization_^T``, rows and points scaled
    residual_trace_, relative_residual_trace_ : exact certificate ``tr(K - G G^T)``, and its share of ``tr K``
    basis_, scaler_ : for `streamkernel.factors.FeatureRows`
    kernel_, lengthscale_, n_sweeps_, n_features_in_
    model_ : everything that `save` writes

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import Nystroem
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> Nystroem(50).fit_transform(X).shape
    (500, 50)
    """

    _kind = NystroemModel.KIND
    _model = NystroemModel

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
        """Choose the basis.

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
            new._adopt(fit_nystroem(table, settings, session, **limits))
        return self

    def _adopt(self, model: NystroemModel) -> Self:
        super()._adopt(model)
        self.normalization_ = model.arrays["normalization"]
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.basis_)
