"""The periodic kernel: periods far from 0, rows a whole period apart, points on circles."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from kernels.formulas import plain
from scipy.spatial.distance import pdist

from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian, Periodic, as_kernel, kernel_from_config
from streamkernel.solvers import median_lengthscale

PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
PERIODS = (1.0, 24.0, 0.1, 365.2425, 3e-7, 1e17)


def exact(x: float, period: float) -> tuple[Fraction, Fraction]:
    """cos and sin of ``2 pi x / period`` by their series, in rational numbers: 70 digits."""
    turns = Fraction(x) / Fraction(period)
    angle, digits = 2 * PI * (turns - round(turns)), 10**90
    sums, term = [Fraction(0), Fraction(0)], Fraction(1)
    for k in range(90):
        sums[k % 2] += -term if k % 4 > 1 else term
        term = Fraction(int(term * angle / (k + 1) * digits), digits)
    return sums[0], sums[1]


def hard_numbers(period: float) -> np.ndarray:
    """Numbers near to and far from 0, at and beside all eighths of the circle, and of more turns than the loop has."""
    rng, eighths = np.random.default_rng(0), np.arange(-8, 9) / 8 * period
    some = [rng.uniform(-size, size, 12) * period for size in (0.2, 1.0, 1e6, 1e12, 2.0**52, 2.0**60)]
    beside = [eighths, np.nextafter(eighths, np.inf), eighths * (1 - 1e-15), np.exp2(rng.uniform(-150, -1, 8)) * period]
    return np.concatenate([*some, *beside])


@pytest.mark.parametrize("period", PERIODS)
def test_cosines_and_sines_are_exact_to_one_and_a_half_units_in_the_last_place(period: float) -> None:
    x = hard_numbers(period)
    found = Periodic(1.0, period).mapped(x[:, None])
    for number, values in zip(x.tolist(), found.tolist(), strict=True):
        for value, truth in zip(values, exact(number, period), strict=True):
            if abs(truth) < Fraction(1, 10**60):  # pi has 80 digits here
                assert abs(value) < 1e-60, number
            else:
                assert abs(Fraction(value) - truth) < 1.5 * Fraction(float(np.spacing(abs(float(truth))))), number


def test_float32_rows_have_the_same_values_rounded() -> None:
    X = np.stack([hard_numbers(period)[:72] for period in PERIODS], axis=1).astype(np.float32)
    kernel = Periodic(1.0, PERIODS)
    found = kernel.mapped(X)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, kernel.mapped(X.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bits_of_a_row_do_not_depend_on_the_rows_beside_it(dtype: type) -> None:
    # A row alone is computed without vectors, and one among 600 in part of the loop's three runs.
    X = (np.random.default_rng(2).standard_normal((600, 3)) * [1.0, 1e3, 1e9]).astype(dtype)
    kernel = Periodic(0.8, (24.0, 0.1, 2.5))
    alone = np.concatenate([kernel.mapped(row[None]) for row in X])
    np.testing.assert_array_equal(kernel.mapped(X), alone)
    np.testing.assert_array_equal(kernel.mapped(X[1:7, :]), alone[1:7])
    far = np.concatenate([X, np.full((1, 3), 3e38 if dtype == np.float32 else 1e300)]).astype(dtype)
    np.testing.assert_array_equal(kernel.mapped(far)[:600], alone)
    prepared = kernel.prepare(X[:20])
    rows = np.tile(X, (6, 1))  # more than one chunk of mapped rows
    np.testing.assert_array_equal(prepared.block(rows), np.tile(prepared.block(X), (6, 1)))


def test_what_is_not_finite_is_nan_in_its_own_place_only() -> None:
    X = np.array([[0.25, 0.5], [np.inf, 0.5], [0.25, np.nan]])
    found = Periodic(1.0, 1.0).mapped(X)
    np.testing.assert_array_equal(np.isnan(found), np.tile(~np.isfinite(X), 2))
    np.testing.assert_array_equal(found[0], [0.0, -1.0, 1.0, 0.0])
    assert Periodic(1.0, 1.0).mapped(np.zeros((0, 2))).shape == (0, 4)
    assert Periodic(1.0, 1.0).mapped(np.zeros((3, 0))).shape == (3, 0)


BITS = """
import hashlib, sys
import numpy as np
from streamkernel.kernels import Periodic
X = np.random.default_rng(3).standard_normal((1001, 2)) * [1.0, 1e6]
print(hashlib.sha256(Periodic(1.0, (0.7, 365.2425)).mapped(X).tobytes()).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the processors are x86 ones")
@pytest.mark.parametrize("processor", ["nehalem", "haswell"])
def test_the_bits_are_the_same_without_wide_vectors(processor: str, tmp_path: Path) -> None:
    features = {"nehalem": "+sse4.2", "haswell": "+avx,+avx2,+fma"}[processor]
    environment = {**os.environ, "NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": features}
    environment |= {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", BITS], env=environment, capture_output=True, text=True, check=True)
    X = np.random.default_rng(3).standard_normal((1001, 2)) * [1.0, 1e6]
    here = hashlib.sha256(Periodic(1.0, (0.7, 365.2425)).mapped(X).tobytes()).hexdigest()
    assert done.stdout.strip() == here


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
