"""The columns as basis: unit vectors, whose features are the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import problem_of, select

from streamkernel.engine import Session
from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian, Linear, Polynomial
from streamkernel.selection import Columns, as_rule

X = np.random.default_rng(0).standard_normal((60, 5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_are_the_rows(dtype: Any) -> None:
    rows = X.astype(dtype)
    found, session = select(as_rule("columns"), problem_of(rows, n=5, kernel=Linear()), Session())
    basis = found.basis
    np.testing.assert_array_equal(basis.points, np.eye(5))
    assert basis.points.dtype == np.dtype(dtype)
    assert basis.rows.tolist() == [-1] * 5
    np.testing.assert_array_equal(basis.L, np.eye(5))
    np.testing.assert_array_equal(basis.features(rows), rows)
    np.testing.assert_allclose(basis.residual(rows), 0.0, atol=1e-13)
    assert (found.ended, session.records) == ("size", [])
    assert [record.stop for record in found.rounds] == [5]


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Polynomial(1)])
def test_other_kernels_have_other_features(kernel: Any) -> None:
    with pytest.raises(ParameterError, match="features of the kernel 'linear' only"):
        select(Columns(), problem_of(X, n=5, kernel=kernel), Session())


def test_kernel_values_at_unit_vectors_are_those_of_the_formula() -> None:
    """They are copies, to the bit of the sums of products."""
    plain = super(Linear, Linear()).prepare(np.eye(5))
    for dtype in (np.float32, np.float64):
        rows = (1e3 * X).astype(dtype)
        np.testing.assert_array_equal(Linear().prepare(np.eye(5)).block(rows), plain.block(rows))
        np.testing.assert_array_equal(Linear().prepare(np.eye(5)).block(rows), rows)
    # Other points keep the formula: a permutation, a part of the unit vectors.
    for points in (np.eye(5)[::-1].copy(), np.eye(5)[:3].copy()):
        np.testing.assert_array_equal(Linear().prepare(points).block(X), X @ points.T)
