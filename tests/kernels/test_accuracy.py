"""Every kernel against its plain formula in float64, and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.formulas import examples, of_distances, plain, stationary
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels as processes
from sklearn.metrics import pairwise

from streamkernel.kernels import Cosine, Gaussian, Laplacian, Linear, Matern, Polynomial, RationalQuadratic, as_kernel

TOLERANCE = {np.float32: 1e-6, np.float64: 1e-14}
WIDE = 784  # which takes long
FEATURES = [1, 2, 3, 8, 12, 20, 33, 54, 100, 300, WIDE]


def clustered(p: int, seed: int = 0, spread: float = 1.0) -> tuple[NDArray, NDArray]:
    """Rows in clusters: many pairs are close, where inner products cancel; some are equal."""
    rng = np.random.default_rng(seed)
    centres = spread * rng.standard_normal((12, p))
    X = centres[rng.integers(0, 12, 131)] + 0.15 * rng.standard_normal((131, p))
    Z = centres[rng.integers(0, 12, 77)] + 0.15 * rng.standard_normal((77, p))
    X[:5] = Z[:5]
    X[5:9] = Z[5:9] + 1e-5
    return X, Z


# In double precision of every third number of features.
@pytest.mark.parametrize(
    ("p", "dtype"),
    [
        pytest.param(p, dtype, marks=[pytest.mark.slow] * (p == WIDE or (dtype is np.float64 and at % 3 > 0)))
        for dtype in (np.float32, np.float64)
        for at, p in enumerate(FEATURES)
    ],
)
def test_values_agree_with_the_formula(p: int, dtype: type) -> None:
    X, Z = (A.astype(dtype) for A in clustered(p))
    for kernel in examples(p):
        K = kernel(X, Z)
        truth = plain(kernel, X, Z)
        assert K.dtype == dtype
        # An inner product is no better than its terms: the scale is that of |x| |z|.
        scale = max(1.0, float(plain(kernel, np.abs(X), np.abs(Z)).max())) if not kernel.stationary else 1.0
        assert np.abs(K - truth).max() <= TOLERANCE[dtype] * scale, kernel


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [12, 54, 300])
@pytest.mark.parametrize("share", [0.3, 0.5, 1.0, 3.0])
def test_inner_products_are_used_only_where_they_can_be(p: int, share: float, dtype: type) -> None:
    # Lengthscales from short to long: rows fall on both sides of the limit, also within one tile.
    X, Z = (A.astype(dtype) for A in clustered(p, seed=1))
    X[::7] *= 4
    length = share * np.sqrt(p)
    for kernel in (Gaussian(length), Matern(length, 1.5), RationalQuadratic(length, 3.0)):
        assert np.abs(kernel(X, Z) - plain(kernel, X, Z)).max() <= TOLERANCE[dtype], kernel


@pytest.mark.parametrize("p", [3, 20, 54])
def test_float32_rows_far_from_the_origin(p: int) -> None:
    X, Z = (np.float32(A + 1e4) for A in clustered(p))
    for kernel in of_distances(p):
        assert np.abs(kernel(X, Z) - plain(kernel, X, Z)).max() <= 1e-6, kernel


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [1, 8, 54, 200])
def test_equal_rows_have_exactly_one(p: int, dtype: type) -> None:
    X, Z = (A.astype(dtype) for A in clustered(p))
    for kernel in stationary(p):
        assert np.all(kernel(X, Z)[range(5), range(5)] == 1), kernel
        assert np.all(np.diag(kernel(X)) == 1), kernel


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [2, 20, 60])
def test_symmetric_up_to_rounding(p: int, dtype: type) -> None:
    # To the bit where differences are summed; a row far from the others may take them where the other takes products.
    X = clustered(p)[0].astype(dtype)[:60]
    for kernel in stationary(p):
        K = kernel(X)
        assert np.abs(K - K.T).max() <= (TOLERANCE[dtype] if p >= 12 else 0), kernel


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [1, 16, 54])
def test_huge_distances_are_zero_and_tiny_ones_are_one(p: int, dtype: type) -> None:
    huge = 1e18 if dtype == np.float32 else 1e150
    X = np.array([[0.0] * p, [huge] * p, [-huge] * p, [1e-38] * p, [1e4] * p], dtype=dtype)
    for kernel in of_distances(p):
        K = kernel(X)
        assert np.isfinite(K).all(), kernel
        assert K[0, 3] == 1, kernel
        with np.errstate(over="ignore"):
            truth = plain(kernel, X, X)
        far = [0, 1, 1, 0], [1, 2, 4, 4]
        np.testing.assert_allclose(K[far], truth[far], rtol=1e-5, atol=1e-30, err_msg=str(kernel))


@pytest.mark.parametrize("scale", [1e-16, 1e-12, 1e12, 1e16])
@pytest.mark.parametrize("p", [2, 20])
def test_units_do_not_matter(p: int, scale: float) -> None:
    X, Z = clustered(p)
    for kernel in of_distances(p):
        scaled = kernel.with_lengthscale(scale * np.asarray(kernel.lengthscale))
        Xs, Zs = np.float32(scale * X), np.float32(scale * Z)
        assert np.abs(scaled(Xs, Zs) - plain(scaled, Xs, Zs)).max() <= 1e-6, kernel


@pytest.mark.parametrize("p", [3, 20])
def test_agreement_with_scikit_learn(p: int) -> None:
    X, Z = clustered(p)
    pairs = [
        (Gaussian(1.3), processes.RBF(1.3)),
        (Matern(1.3, 0.5), processes.Matern(1.3, nu=0.5)),
        (Matern(1.3, 1.5), processes.Matern(1.3, nu=1.5)),
        (Matern(1.3, 2.5), processes.Matern(1.3, nu=2.5)),
        (RationalQuadratic(1.3, 0.8), processes.RationalQuadratic(1.3, alpha=0.8)),
        (as_kernel("rbf", gamma=0.2), lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.2)),
        (as_kernel("laplacian", gamma=0.2), lambda A, B: pairwise.laplacian_kernel(A, B, gamma=0.2)),
        (Laplacian(5.0), lambda A, B: pairwise.laplacian_kernel(A, B, gamma=0.2)),
        (as_kernel("poly", gamma=0.2, degree=4, coef0=0.5), lambda A, B: pairwise.polynomial_kernel(A, B, 4, 0.2, 0.5)),
        (Polynomial(), pairwise.polynomial_kernel),
        (Linear(), pairwise.linear_kernel),
        (Cosine(), pairwise.cosine_similarity),
    ]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-12, atol=1e-13, err_msg=str(ours))
