"""exp over its whole range: with one feature and lengthscale 1 the Laplacian kernel against 0 is exp(-x)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from streamkernel.kernels import Laplacian, RationalQuadratic


def exponential(x: NDArray) -> NDArray:
    return Laplacian(1.0).prepare(np.zeros((1, 1), x.dtype)).block(x[:, None])[:, 0]


def arguments(dtype: type) -> NDArray:
    rng = np.random.default_rng(0)
    end = 87.3 if dtype == np.float32 else 708.3
    log2 = np.log(2)
    edges = np.arange(0.5, end / log2) * log2  # where the range reduction changes its integer
    around = np.concatenate([edges * (1 + d) for d in (-3e-7, -1e-15, 0, 1e-15, 3e-7)])
    small = np.exp2(rng.uniform(-140 if dtype == np.float32 else -1070, 0, 50_000))
    return np.concatenate([rng.uniform(0, end, 400_000), rng.uniform(0, 2, 400_000), around, small]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_within_two_units_in_the_last_place(dtype: type) -> None:
    x = arguments(dtype)
    truth = np.exp(-x.astype(np.longdouble))
    normal = truth >= np.finfo(dtype).tiny
    error = np.abs(exponential(x).astype(np.longdouble) - truth)[normal] / np.spacing(truth[normal].astype(dtype))
    assert error.max() <= 2
    assert normal.mean() > 0.99


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_at_zero_and_for_denormal_arguments(dtype: type) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([0, tiny, 7 * tiny, np.finfo(dtype).tiny, 1e-30], dtype=dtype)
    assert np.all(exponential(x) == 1)
    assert np.all(exponential(-x) == 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_underflow(dtype: type) -> None:
    tiny = np.finfo(dtype).tiny
    end = -np.log(np.longdouble(tiny))
    x = np.concatenate([np.linspace(0.99 * end, 1.2 * end, 200_001), [1e4, 1e10, 1e18]]).astype(dtype)
    truth = np.exp(-x.astype(np.longdouble))
    values = exponential(x)
    assert np.all(values >= 0)
    # Below the normal numbers: 0, or right to a denormal's last place.
    below = truth < 0.999 * tiny
    wrong = np.abs(values.astype(np.longdouble) - truth) > 2 * np.finfo(dtype).smallest_subnormal
    assert np.all(values[below & wrong] == 0)
    assert np.all(values[-3:] == 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_never_rises(dtype: type) -> None:
    x = np.sort(arguments(dtype))
    values = exponential(x)
    assert np.all(values[1:] <= values[:-1] * (1 + 2 * np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [0.1, 1.0, 3.7, 1000.0])
def test_logarithm_over_its_range(shape: float, dtype: type) -> None:
    # (1 + x^2 / (2 shape))^-shape for x from denormal squares to squares that overflow nothing.
    x = np.concatenate([np.exp2(np.linspace(-60, 60, 20_001)), np.linspace(0, 30, 20_001)]).astype(dtype)
    values = RationalQuadratic(1.0, shape).prepare(np.zeros((1, 1), dtype)).block(x[:, None])[:, 0]
    wide = x.astype(np.longdouble)
    truth = np.exp(-np.longdouble(shape) * np.log1p(wide**2 / (2 * np.longdouble(shape))))
    assert np.abs(values - truth).max() <= (5e-7 if dtype == np.float32 else 5e-16)
