"""The periodic kernel: periods far from 0, rows a whole period apart, points on circles."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.formulas import plain
from scipy.spatial.distance import pdist

from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian, Periodic, as_kernel, kernel_from_config
from streamkernel.solvers import median_lengthscale


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_a_whole_number_of_periods_apart_are_equal(dtype: type) -> None:
    X = np.array([[0.25, 3.0], [7.5, -1.0], [0.0, 0.5]], dtype)
    moved = X + np.array([24.0, 3 * 2.5], dtype) * np.array([[1], [-5], [400]], dtype)
    kernel = Periodic((0.7, 1.3), (24.0, 2.5))
    np.testing.assert_array_equal(np.diag(kernel(X, moved)), 1.0)


def test_no_digits_are_lost_far_from_zero() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2**20, (40, 1)) / 2**10 + 2.0**40  # exact, and so are their differences
    kernel = Periodic(0.8, 24.0)
    np.testing.assert_allclose(kernel(X), plain(kernel, X, X), atol=1e-13)


def test_it_is_the_gaussian_kernel_of_points_on_circles() -> None:
    X = np.random.default_rng(1).standard_normal((30, 2))
    kernel = Periodic(0.9, (2.0, 3.0))
    angles = 2 * np.pi * X / np.array([2.0, 3.0])
    circles = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    np.testing.assert_allclose(kernel(X), Gaussian(0.9)(circles), atol=1e-14)
    assert median_lengthscale(X, kernel) == pytest.approx(np.median(pdist(circles)))


def test_parameters() -> None:
    assert as_kernel("periodic", period=24, lengthscale=2) == Periodic(2.0, 24.0)
    assert kernel_from_config(Periodic(2.0, (1.0, 2.0)).to_config()) == Periodic(2.0, (1.0, 2.0))
    for bad in (0.0, -1.0, float("nan"), "day", [1.0, 0.0]):
        with pytest.raises(ParameterError, match="period"):
            Periodic(1.0, bad)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="period has 2 entries for 3 features"):
        Periodic(1.0, (1.0, 2.0)).prepare(np.zeros((4, 3)))
    with pytest.raises(ParameterError, match=r"gamma = 0.5 means nothing to the kernel 'periodic'"):
        as_kernel("periodic", gamma=0.5)
