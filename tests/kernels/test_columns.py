"""Kernels of some columns, and of codes of categories."""

from __future__ import annotations

import numpy as np
import pytest

from streamkernel.errors import DegenerateBandwidthError, ParameterError
from streamkernel.kernels import Gaussian, Hamming, Linear, Matern, OfColumns, free_parts, per_feature
from streamkernel.solvers import median_lengthscale
from streamkernel.solvers.lengthscale import part_medians


def test_other_columns_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((20, 4)), rng.standard_normal((9, 4))
    kernel = OfColumns(Gaussian((1.0, 2.0)), [3, 1])
    before = kernel(X, Z)
    np.testing.assert_array_equal(before, Gaussian((1.0, 2.0))(X[:, [3, 1]], Z[:, [3, 1]]))
    X[:, [0, 2]] += 5.0
    np.testing.assert_array_equal(kernel(X, Z), before)


def test_columns_within_columns_and_their_lengthscales() -> None:
    kernel = OfColumns(OfColumns(Gaussian(), [1]) + Matern(), [2, 0]) * Linear()
    assert [part.columns.tolist() for part in free_parts(kernel, 4)] == [[0], [2, 0]]
    split = per_feature(kernel, 4)
    assert [part.kernel.lengthscale for part in free_parts(split, 4)] == [(1.0,), (1.0, 1.0)]
    X = np.random.default_rng(1).standard_normal((50, 4))
    assert part_medians(X, kernel) == [
        median_lengthscale(X[:, [0]], Gaussian()), median_lengthscale(X[:, [2, 0]], Matern()),
    ]  # fmt: skip


def test_a_constant_column_is_named() -> None:
    X = np.random.default_rng(1).standard_normal((50, 3))
    X[:, 1] = 4.0
    with pytest.raises(DegenerateBandwidthError, match="columns 1, which gaussian sees: all 50 sampled rows are equal"):
        part_medians(X, Gaussian() + OfColumns(Gaussian(), [1]))


@pytest.mark.parametrize("bad", [[], [0, 0], [-1], [0.5], ["x", "x"], [b"x"], 1.5, [True], None])
def test_bad_columns(bad: object) -> None:
    with pytest.raises(ParameterError, match="columns"):
        OfColumns(Gaussian(), bad)  # type: ignore[arg-type]


def test_a_column_that_the_rows_do_not_have() -> None:
    with pytest.raises(ParameterError, match="sees column 3, and the rows have 3 features; give columns from 0 to 2"):
        (Linear() + OfColumns(Gaussian(), [0, 3])).prepare(np.zeros((2, 3)))
    with pytest.raises(ParameterError, match="3 entries for 2 features"):
        OfColumns(Gaussian((1.0, 1.0, 1.0)), [0, 1]).prepare(np.zeros((2, 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_codes_of_categories_are_alike(dtype: type) -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 4, (60, 3))
    names = np.array([-7.5, 0.0, 1e-30, 3e7], dtype)
    kernel = Hamming((1.0, 2.0, 0.5))
    K = kernel(codes.astype(dtype))
    np.testing.assert_array_equal(K, kernel(names[codes]))
    assert np.all(np.diag(K) == 1)
    differ = (codes[:, None] != codes[None]).sum(axis=2)
    np.testing.assert_allclose(Hamming(2.0)(codes), np.exp(-differ / 2.0), rtol=1e-14)
    assert median_lengthscale(codes.astype(np.float64), Hamming()) in (2.0, 2.5, 3.0)
