"""The kernel that is none: scikit-learn's values, eigenvalues of both signs, refused where features are whitened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernels.formulas import plain
from sklearn.metrics.pairwise import sigmoid_kernel

from streamkernel import GaussianProcessRegressor, KernelPCA, KernelRidge, Nystroem
from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian, Sigmoid, as_kernel, kernel_from_config

X = np.random.default_rng(0).standard_normal((500, 3))


def test_scikit_learns_values_in_blocks_of_any_size() -> None:
    kernel = as_kernel("sigmoid", gamma=0.3, coef0=-0.5)
    K = kernel(X)
    np.testing.assert_allclose(K, sigmoid_kernel(X, gamma=0.3, coef0=-0.5), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(K), rtol=1e-12)
    prepared = kernel.prepare(X[:77])
    for length in (1, 7, 63):
        np.testing.assert_array_equal(prepared.block(X[3 : 3 + length]), prepared.block(X)[3 : 3 + length])
    assert kernel_from_config(kernel.to_config()) == kernel
    np.testing.assert_allclose(as_kernel("sigmoid")(X), plain(Sigmoid(), X, X), rtol=1e-12, atol=1e-15)


def test_it_says_what_it_is() -> None:
    assert np.linalg.eigvalsh(Sigmoid()(X))[0] < -1e-3
    assert not Sigmoid().positive_definite
    assert not (Gaussian() + Sigmoid()).positive_definite
    assert not (Sigmoid() * Gaussian()).positive_definite
    assert (Gaussian() + Gaussian()).positive_definite


@pytest.mark.parametrize("make", [KernelRidge, GaussianProcessRegressor, Nystroem, KernelPCA])
def test_refused_where_features_are_whitened(make: Callable[..., Any]) -> None:
    for kernel in ("sigmoid", Gaussian() + Sigmoid()):
        with pytest.raises(ParameterError, match=r"not positive definite.*matching pursuit"):
            make(5, kernel=kernel).fit(X, X[:, 0])


@pytest.mark.parametrize("options", [{"coef0": np.nan}, {"coef0": "1"}, {"coef0": True}, {"gamma": -1.0}])
def test_parameters_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(options))):
        Sigmoid(**options)
