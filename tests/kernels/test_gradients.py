"""Gradients by log lengthscales against central differences of the plain formulas."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.formulas import examples, plain
from kernels.test_properties import kernels
from numpy.typing import NDArray
from strategies import chunkings, rows, seeds

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.kernels import (
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    RationalQuadratic,
    lengthscale_gradient,
    log_lengthscales,
    per_feature,
    prepare_gradient,
    with_log_lengthscales,
)

Matrix = NDArray[np.float64]


def problem(p: int, seed: int = 0, offset: float = 0.0) -> tuple[Matrix, Matrix, Matrix]:
    """Rows, points and weights; some rows are points, two columns of the points are equal rows."""
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((70, p)) + offset, rng.standard_normal((19, p)) + offset
    X[:4], Z[7] = Z[:4], Z[3]
    return X, Z, rng.standard_normal((70, 19))


def differences(kernel: Kernel, X: Matrix, Z: Matrix, W: Matrix) -> Matrix:
    def f(values: Matrix) -> float:
        return float(np.sum(W * plain(with_log_lengthscales(kernel, values), X, Z)))

    return naive.slopes(f, log_lengthscales(kernel))


def size(kernel: Kernel, X: Matrix, Z: Matrix, W: Matrix) -> float:
    return max(1.0, float(np.sum(np.abs(W * plain(kernel, X, Z)))))


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("p", [1, 2, 5, 20])
def test_every_kernel_agrees_with_central_differences(p: int, offset: float) -> None:
    X, Z, W = problem(p, offset=offset)
    for kernel in examples(p):
        found = lengthscale_gradient(kernel, X, Z, W)
        expected = differences(kernel, X, Z, W)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * size(kernel, X, Z, W), err_msg=str(kernel))


NESTED = [
    (Gaussian(1.3) + Matern((0.8, 1.0, 2.0), 1.5)) * RationalQuadratic(1.7, 0.6) + Linear(),
    Linear() * Gaussian((0.7, 1.1, 2.0)),
    Laplacian((1.0, 2.0, 3.0)) * Matern(1.4, 2.5) * Matern(2.0, 0.5),
    Linear() + Linear(),
]


@pytest.mark.parametrize("kernel", NESTED, ids=lambda kernel: f"{len(log_lengthscales(kernel))} lengthscales")
def test_sums_and_products_of_any_depth(kernel: Kernel) -> None:
    X, Z, W = problem(3)
    expected = differences(kernel, X, Z, W)
    np.testing.assert_allclose(
        lengthscale_gradient(kernel, X, Z, W), expected, rtol=1e-8, atol=1e-9 * size(kernel, X, Z, W)
    )


@given(st.data(), st.integers(1, 6), seeds)
def test_a_random_kernel_on_random_rows(data: st.DataObject, p: int, seed: int) -> None:
    X = data.draw(rows(max_rows=40, min_features=p, max_features=p, dtype=np.float64))
    Z = X[: data.draw(st.integers(1, len(X)))]
    W = np.random.default_rng(seed).standard_normal((len(X), len(Z)))
    kernel = data.draw(kernels(p))
    np.testing.assert_allclose(
        lengthscale_gradient(kernel, X, Z, W),
        differences(kernel, X, Z, W),
        rtol=1e-6,
        atol=1e-7 * size(kernel, X, Z, W),
    )


@given(st.data(), st.sampled_from(examples(4)))
def test_blocks_of_rows_add_up(data: st.DataObject, kernel: Kernel) -> None:
    X, Z, W = problem(4)
    gradient, start = prepare_gradient(kernel, Z), 0
    total = np.zeros(gradient.size)
    for length in data.draw(chunkings(len(X))):
        total += gradient(X[start : start + length], W[start : start + length])
        start += length
    np.testing.assert_allclose(total, gradient(X, W), rtol=1e-10, atol=1e-10 * size(kernel, X, Z, W))


def test_rows_beyond_one_chunk() -> None:
    rng = np.random.default_rng(0)
    X, Z, W = rng.standard_normal((777, 3)), rng.standard_normal((5, 3)), rng.standard_normal((777, 5))
    for kernel in examples(3):
        expected = differences(kernel, X, Z, W)
        found = lengthscale_gradient(kernel, X, Z, W)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * size(kernel, X, Z, W))


def test_float32_rows_count_with_all_their_digits() -> None:
    X, Z, W = problem(6, offset=1e4)
    single, points = X.astype(np.float32), Z.astype(np.float32)
    for kernel in examples(6):
        found = lengthscale_gradient(kernel, single, points, W)
        exact = lengthscale_gradient(kernel, single.astype(np.float64), points.astype(np.float64), W)
        np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("distance", [0.0, 1e-300, 1e-12, 1e-7, 1e-5])
def test_matern_12_has_no_slope_at_a_point_and_a_small_one_near_it(distance: float) -> None:
    X, Z = np.array([[1.0 + distance, 2.0], [5.0, 2.0]]), np.array([[1.0, 2.0]])
    # exp(-r) r for r = distance; W = 0 for the far row.
    r = X[0, 0] - 1.0
    found = lengthscale_gradient(Matern((1.0, 1.0), 0.5), X, Z, np.array([[1.0], [0.0]]))
    assert found == pytest.approx([r * np.exp(-r), 0.0], abs=1.1e-6)
    assert found[0] <= r
    if r == 0.0:
        assert found.tolist() == [0.0, 0.0]


def test_no_lengthscale_moves_a_diagonal() -> None:
    X = np.random.default_rng(0).standard_normal((9, 3))
    for kernel in [*examples(3), *NESTED]:
        moved = with_log_lengthscales(kernel, log_lengthscales(kernel) + 0.3)
        np.testing.assert_array_equal(kernel.diagonal(X), moved.diagonal(X))


def test_lengths_that_leave_nothing_of_the_kernel() -> None:
    X, Z, W = problem(2)
    for kernel in examples(2):
        for change in (-38.0, 38.0):
            far = with_log_lengthscales(kernel, log_lengthscales(kernel) + change)
            assert np.isfinite(lengthscale_gradient(far, X, Z, W)).all(), far


def test_lengthscales_out_and_in() -> None:
    for kernel in [*examples(3), *NESTED]:
        values = log_lengthscales(kernel)
        assert np.allclose(log_lengthscales(with_log_lengthscales(kernel, values + 1.0)), values + 1.0)
    split = per_feature(Gaussian(2.0) * (Matern((1.0, 2.0), 1.5) + Linear()), 2)
    assert split == Gaussian((2.0, 2.0)) * (Matern((1.0, 2.0), 1.5) + Linear())
    with pytest.raises(ShapeError, match="3 lengthscales for a kernel that has 1"):
        with_log_lengthscales(Gaussian(1.0), np.zeros(3))


def test_weights_of_the_wrong_shape() -> None:
    X, Z, W = problem(2)
    with pytest.raises(ShapeError, match=r"W has shape \(19, 70\)"):
        lengthscale_gradient(Gaussian(1.0), X, Z, W.T)
    with pytest.raises(ParameterError, match="2 entries for 3 features"):
        prepare_gradient(Gaussian((1.0, 2.0)), np.zeros((4, 3)))


class Unknown(Kernel):
    name = "unknown"

    def prepare(self, Z: Any) -> Any: ...

    def diagonal(self, X: Any) -> Any: ...

    def with_lengthscale(self, lengthscale: Any) -> Kernel:
        return self

    def check_features(self, n_features: int) -> None: ...


def test_a_kernel_of_someone_else() -> None:
    with pytest.raises(ParameterError, match=r"slope of .* is not known"):
        prepare_gradient(Unknown(), np.zeros((2, 2)))
