"""The average outer product of gradients, against central differences of the fitted functions."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from kernels.formulas import examples, plain
from problems import FLOAT64, Float, basis_of, blocks, scratch_of

from streamkernel.basis import Basis
from streamkernel.errors import ParameterError
from streamkernel.kernels import ArcCosine, Gaussian, Kernel, Laplacian, Matern, Polynomial
from streamkernel.reductions.sums import AverageGradientProduct, GradientProducts
from streamkernel.table import RowBlock


def average(
    basis: Basis, a: Float, X: Float, weights: Float | None = None, scale: Float | None = None, chunk: int = 64
) -> AverageGradientProduct:
    work = GradientProducts(basis, a, scale)
    lengths = [min(chunk, len(X) - start) for start in range(0, len(X), chunk)]
    state = work.empty()
    for block in blocks(X, None, lengths, weights):
        assert state is not None
        state = work.fold(state, block)
    assert state is not None
    return work.finalize(state)


def products(kernel: Kernel, X: Float, Z: Float, a: Float, weights: Float) -> Float:
    """``sum_i w_i sum_o grad f_o(x_i) grad f_o(x_i)^T / sum_i w_i``, by differences."""
    A = np.zeros((X.shape[1], X.shape[1]))
    for column in a.T:
        for x, w in zip(X, weights, strict=True):
            g = naive.slopes(lambda at, c=column: float(plain(kernel, at[None], Z)[0] @ c), x)  # type: ignore[misc]
            A += w * np.outer(g, g)
    return A / weights.sum()


# ------------------------------------------------------------------------------------------------ the card
PICKED = [3, 10, 17, 24, 31, 38]
RHO = 0.1
CARD = naive.card()


def ridge(kernel: Kernel, X: Float, y: Float) -> tuple[Float, float]:
    """Coefficients of ``(K^T K + rho k(Z, Z)) a = K^T y``, and the sum of squared residuals."""
    K = plain(kernel, X, X[PICKED])
    a = np.linalg.solve(K.T @ K + RHO * K[PICKED], K.T @ y)
    return a, float(np.sum((y - K @ a) ** 2))


def test_the_example_of_the_card() -> None:
    X, y = CARD.X, CARD.y
    a, residuals = ridge(Gaussian(1.0), X, y)
    found = average(basis_of(X, PICKED), a[:, None], X)
    np.testing.assert_allclose(found.A, [[0.24545319, 0.07273219], [0.07273219, 0.19244605]], atol=1e-8)
    assert residuals == pytest.approx(4.011320, abs=1e-6)
    assert (found.count, found.weight) == (40, 40.0)
    values, V = np.linalg.eigh(found.A)
    T = V * np.sqrt(values / values.mean())
    np.testing.assert_allclose(T @ T.T, [[1.12104871, 0.33218685], [0.33218685, 0.87895129]], atol=1e-8)
    _, again = ridge(Gaussian(1.0), X @ T, y)
    assert again == pytest.approx(3.525619, abs=1e-6)


def test_every_kernel_on_the_rows_of_the_card() -> None:
    X, y = CARD.X, CARD.y
    weights = 1.0 + np.arange(40) % 3
    for kernel in examples(2):
        if "order=0" in str(kernel) or "Hamming" in str(kernel):
            continue  # steps, which have no slope
        a = np.stack([y[PICKED], 1.0 / (1.0 + np.arange(6))], axis=1)
        # Rows that are not points: a kernel may have a kink there.
        rows = X + 0.01
        expected = products(kernel, rows, X[PICKED], a / [1.0, 2.0], weights)
        found = average(basis_of(X, PICKED, kernel), a, rows, weights, np.array([1.0, 2.0]))
        size = float(np.abs(expected).max())
        np.testing.assert_allclose(found.A, expected, rtol=1e-8, atol=1e-8 * size, err_msg=str(kernel))
        np.testing.assert_array_equal(found.A, found.A.T)


# ------------------------------------------------------------------------------------------------------- invariants
@pytest.mark.parametrize("kernel", [Gaussian(1.5), Matern((1.0, 2.0, 3.0), 1.5), Laplacian(2.0)])
def test_whole_weights_are_repeated_rows(kernel: Kernel) -> None:
    rng = np.random.default_rng(0)
    X, a, times = rng.standard_normal((90, 3)), rng.standard_normal((7, 2)), np.arange(90) % 4
    basis = basis_of(X, range(7), kernel)
    found = average(basis, a, X, times.astype(np.float64))
    repeated = average(basis, a, np.repeat(X, times, axis=0))
    np.testing.assert_allclose(found.A, repeated.A, rtol=1e-10, atol=1e-12)
    assert (found.weight, found.count) == (repeated.weight, 90)


def test_functions_add_up() -> None:
    rng = np.random.default_rng(0)
    X, a = rng.standard_normal((90, 3)), rng.standard_normal((7, 3))
    basis = basis_of(X, range(7), Gaussian(1.5))
    each = [average(basis, a[:, [o]], X).A for o in range(3)]
    np.testing.assert_allclose(average(basis, a, X).A, np.sum(each, axis=0), rtol=1e-10, atol=1e-12)
    out = average(basis, a, X, scale=np.array([1.0, np.inf, 2.0])).A
    np.testing.assert_allclose(out, each[0] + each[2] / 4, rtol=1e-10, atol=1e-12)


def test_an_offset_of_the_rows_loses_no_digits() -> None:
    rng = np.random.default_rng(0)
    X, a = rng.standard_normal((90, 3)).round(3), rng.standard_normal((7, 1))
    for kernel in (Gaussian(1.5), Matern(1.0, 2.5), Laplacian(2.0)):
        here = average(basis_of(X, range(7), kernel), a, X).A
        there = average(basis_of(X + 1e5, range(7), kernel), a, X + 1e5).A
        np.testing.assert_allclose(there, here, rtol=1e-8, atol=1e-9)


def test_rows_without_weight_and_functions_without_slope() -> None:
    X, a = np.random.default_rng(0).standard_normal((20, 3)), np.ones((4, 1))
    basis = basis_of(X, range(4))
    assert not average(basis, a, X, np.zeros(20)).A.any()
    assert not average(basis, 0 * a, X).A.any()
    assert not average(Basis.empty(Gaussian(1.0), 3, FLOAT64), np.zeros((0, 1)), X).A.any()


def test_a_kernel_without_a_gradient_is_refused() -> None:
    X = np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(ParameterError, match="take order 1"):
        average(basis_of(X, range(4), ArcCosine(0)), np.ones((4, 1)), X)


# ------------------------------------------------------------------------------------------------------- the promise
@pytest.mark.parametrize(
    ("kernel", "n", "p", "d"),
    [
        (Gaussian(4.0), 400, 12, 1),
        (Gaussian(4.0), 200, 60, 12),
        (Gaussian(4.0), 300, 900, 12),
        (Matern(4.0, 0.5), 1000, 5, 3),
        (Laplacian(9.0), 400, 12, 2),
        (Polynomial(), 400, 12, 2),
        (ArcCosine(1), 400, 12, 2),
        (Gaussian(4.0) * Laplacian(9.0) + Polynomial(), 400, 12, 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
def test_a_block_holds_what_it_promises(kernel: Kernel, n: int, p: int, d: int, dtype: Any) -> None:
    X = np.random.default_rng(0).standard_normal((1100, p)).astype(dtype)
    work = GradientProducts(basis_of(X, range(n), kernel), np.ones((n, d)))
    block = RowBlock(0, X, None, np.ones(len(X)))
    state = work.map_block(RowBlock(0, X[:10], None, None))
    peak = scratch_of(work, state, block)
    promised = work.scratch_bytes(len(block.X))
    assert 0.5 * promised < peak <= promised + 20_000
