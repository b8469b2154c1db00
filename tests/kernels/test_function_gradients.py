"""Gradients of functions by a row against central differences of the plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.formulas import examples, plain
from kernels.test_gradients import NESTED, Matrix, Unknown
from strategies import chunkings

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.kernels import (
    ArcCosine,
    Composite,
    Cosine,
    Gaussian,
    Hamming,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    prepare_function_gradient,
)
from streamkernel.kernels.gradients import function_gradients


def problem(p: int, m: int = 12, n: int = 9, d: int = 3, offset: float = 0.0) -> tuple[Matrix, Matrix, Matrix]:
    """Rows, points and coefficients; the first row is a point, the others have no coordinate near that of a point."""
    rng = np.random.default_rng(p)
    X, Z = rng.standard_normal((m, p)).round(2) + 0.005 + offset, rng.standard_normal((n, p)).round(2) + offset
    X[0] = Z[3]
    return X, Z, rng.standard_normal((n, d))


def has_gradient(kernel: Kernel) -> bool:
    if isinstance(kernel, Composite):
        return all(map(has_gradient, kernel.parts))
    return kernel != ArcCosine(0) and not isinstance(kernel, Hamming)


def kinked(kernel: Kernel) -> bool:
    """Whether the function has a kink at its points, so that differences across it are means of two slopes."""
    if isinstance(kernel, Composite):
        return any(map(kinked, kernel.parts))
    return isinstance(kernel, Laplacian) or (isinstance(kernel, Matern) and kernel.nu == 0.5)


def differences(kernel: Kernel, X: Matrix, Z: Matrix, a: Matrix) -> Matrix:
    """The gradients, by central differences of fourth order for all rows and functions at once."""
    step, found = 1e-4, np.zeros((len(X), a.shape[1], X.shape[1]))
    for k, move in enumerate(step * np.eye(X.shape[1])):
        one, two = ((plain(kernel, X + h, Z) - plain(kernel, X - h, Z)) @ a for h in (move, 2 * move))
        found[:, :, k] = (8 * one - two) / (12 * step)
    return found


def assert_gradients(kernel: Kernel, X: Matrix, Z: Matrix, a: Matrix, tolerance: float = 1e-8) -> None:
    found = prepare_function_gradient(kernel, Z, a)(X)
    expected = differences(kernel, X, Z, a)
    assert found.shape == expected.shape == (len(X), a.shape[1], X.shape[1])
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * size, err_msg=str(kernel))


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("p", [1, 2, 5, 20])
def test_every_kernel_agrees_with_central_differences(p: int, offset: float) -> None:
    X, Z, a = problem(p, offset=offset)
    for kernel in examples(p):
        if not has_gradient(kernel) or (offset and not isinstance(kernel, Gaussian | Matern | Laplacian)):
            continue
        # At a kink the symmetric difference is the mean of both sides, as the gradient is, up to the second derivative.
        assert_gradients(kernel, X, Z, a, 1e-4 if kinked(kernel) else 2e-8)


@pytest.mark.parametrize("kernel", [*NESTED, ArcCosine() * Polynomial() + Cosine() * Gaussian(2.0) * Linear()])
def test_sums_and_products_of_any_depth(kernel: Kernel) -> None:
    X, Z, a = problem(3)
    assert_gradients(kernel, X, Z, a, 1e-4 if kinked(kernel) else 1e-8)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=1), Polynomial(), ArcCosine(1), ArcCosine(2)])
def test_a_row_of_zeros(kernel: Kernel) -> None:
    X, Z, a = problem(3)
    X[1], Z[2] = 0.0, 0.0
    # Order 2 has another second derivative on each side.
    assert_gradients(kernel, X, Z, a, 1e-5)


def test_the_cosine_is_not_continuous_at_zero() -> None:
    X, Z, a = problem(3)
    X[1] = 0.0
    assert not prepare_function_gradient(Cosine(), Z, a)(X)[1].any()


@pytest.mark.parametrize("distance", [1e-300, 1e-12, 1e-7, 1e-5, 1e-3])
def test_the_slope_of_matern_12_is_rounded_off_at_a_point(distance: float) -> None:
    Z, a = np.array([[1.0, 2.0]]), np.ones((1, 1))
    gradient = prepare_function_gradient(Matern(1.0, 0.5), Z, a)
    X = Z + np.array([distance, 0.0])
    r = X[0, 0] - 1.0
    assert gradient(X)[0, 0] == pytest.approx([-np.exp(-r) * min(r / 1e-6, 1.0), 0.0], rel=1e-12)


@given(st.data(), st.sampled_from(examples(4)), st.integers(0, 4))
def test_blocks_of_rows_are_one_block(data: st.DataObject, kernel: Kernel, d: int) -> None:
    if not has_gradient(kernel):
        return
    X, Z, a = problem(4, m=40, d=d)
    gradient, start, parts = prepare_function_gradient(kernel, Z, a), 0, []
    for length in data.draw(chunkings(len(X))):
        parts.append(gradient(X[start : start + length]))
        start += length
    np.testing.assert_allclose(np.concatenate(parts), gradient(X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Laplacian(2.0), Gaussian(1.5) * Linear() + Matern(2.0, 2.5)])
def test_functions_in_groups_are_all_functions(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Z, a = problem(4, m=600, d=7)
    expected = prepare_function_gradient(kernel, Z, a)(X)
    monkeypatch.setattr(function_gradients, "PIECE_BYTES", 8 * 4 * 256 * 3)
    gradient = prepare_function_gradient(kernel, Z, a)
    assert [(rows.start, of.start) for rows, of, _ in gradient.pieces(X)] == [
        (first, o) for first in (0, 256, 512) for o in (0, 3, 6)
    ]
    np.testing.assert_allclose(gradient(X), expected, rtol=1e-12, atol=1e-12)


def test_float32_rows_and_strided_rows_count_with_all_their_digits() -> None:
    X, Z, a = problem(6, m=300, offset=1e3)
    single, points = X.astype(np.float32), Z.astype(np.float32)
    gradient = prepare_function_gradient(Gaussian(3.0), points, a)
    exact = prepare_function_gradient(Gaussian(3.0), points.astype(np.float64), a)(single.astype(np.float64))
    np.testing.assert_array_equal(gradient(single), exact)
    np.testing.assert_array_equal(
        np.concatenate([g.copy() for _, _, g in gradient.pieces(np.asfortranarray(single))]), exact
    )


def test_no_points_no_functions() -> None:
    X, Z, a = problem(3)
    assert not prepare_function_gradient(Gaussian(1.0), Z[:0], a[:0])(X).any()
    assert prepare_function_gradient(Gaussian(1.0), Z, a[:, :0])(X).shape == (12, 0, 3)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Unknown(), r"slope of .* by a row is not known; give a streamkernel kernel"),
        (Gaussian(1.0) + Unknown(), r"slope of .* by a row is not known"),
        (ArcCosine(0), r"ArcCosine\(order=0\) has a kink .* take order 1"),
    ],
)
def test_kernels_without_a_gradient(kernel: Kernel, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        prepare_function_gradient(kernel, np.zeros((2, 2)), np.zeros((2, 1)))


def test_coefficients_of_the_wrong_shape() -> None:
    _, Z, a = problem(2)
    for bad in (a.T, a[:, 0]):
        with pytest.raises(ShapeError, match="one row for each of 9 points"):
            prepare_function_gradient(Gaussian(1.0), Z, bad)
