"""The kernel whose values are given, and the rows of its matrix: property tests against plain indices."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from streamkernel.basis import Basis
from streamkernel.errors import ParameterError, ShapeError
from streamkernel.kernels import Gaussian, Precomputed, prepare_gradient
from streamkernel.matrix_rows import at_own_columns, kernel_values_in, own_in, places_in
from streamkernel.table import open_table


def a_matrix(m: int, dtype: str = "float64") -> np.ndarray:
    X = np.random.default_rng(m).standard_normal((m, 2))
    K = Gaussian(0.7)(X)
    return (0.5 * (K + K.T)).astype(dtype)


@given(
    m=st.integers(1, 40), start=st.integers(0, 39), dtype=st.sampled_from(["float32", "float64", "int64"]),
    data=st.data(),
)  # fmt: skip
def test_rows_of_a_table_are_those_of_the_matrix(m, start, dtype, data):
    K = np.round(100 * a_matrix(m)).astype(dtype)
    first = start % m
    stop = data.draw(st.integers(first + 1, m))
    table = open_table(K).slice(first, stop).as_matrix()
    assert (table.width, table.n_features, table.as_matrix()) == (m + 2, m, table)
    rows = table.read(first, stop).X
    assert rows.dtype == ("float32" if dtype == "float32" else "float64")
    assert_array_equal(kernel_values_in(rows), K[first:stop])
    assert_array_equal(places_in(rows), np.arange(first, stop))
    assert_array_equal(own_in(rows), np.diagonal(K)[first:stop])
    # Blocks are any kernel's: k(x, z) is the value of x at the place of z.
    picks = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, unique=True))
    kernel = Precomputed(m)
    assert_array_equal(kernel.prepare(rows[picks]).block(rows), K[first:stop][:, first + np.array(picks)])
    assert_array_equal(kernel.diagonal(rows), np.diagonal(K)[first:stop])
    own = at_own_columns(rows[picks])
    inner = K[np.ix_(first + np.array(picks), first + np.array(picks))]
    assert_array_equal(Precomputed(len(picks)).prepare(own).block(own), inner)


def test_the_first_columns_of_a_wider_array_are_filled_alone():
    rows = open_table(a_matrix(300)).as_matrix().read(0, 300).X
    prepared = Precomputed(300).prepare(rows[:7])
    wide = np.full((300, 9), np.nan)
    prepared.block(rows, wide[:, :7])
    assert_array_equal(wide[:, :7], prepared.block(rows))
    assert np.isnan(wide[:, 7:]).all()


@given(m=st.integers(2, 30), q=st.integers(1, 30), data=st.data())
def test_rows_for_a_model_are_read_at_its_columns(m, q, data):
    K, columns = a_matrix(m), np.array(data.draw(st.lists(st.integers(0, m - 1), min_size=1, unique=True)))
    rows = np.random.default_rng(q).standard_normal((q, m))
    table = open_table(rows).as_matrix_at(columns, K[columns[0], columns])
    assert table.width == 2 + len(columns)
    block = table.read(0, q).X
    assert_array_equal(kernel_values_in(block), rows[:, columns])
    assert (places_in(block) == -1).all()
    assert np.isnan(own_in(block)).all()
    # The square matrix of the fit is recognised, and has its diagonal.
    known = open_table(K).as_matrix_at(columns, K[columns[0], columns]).read(0, m).X
    assert_array_equal(own_in(known), np.diagonal(K))


def test_a_basis_of_columns_grows_and_travels():
    K = a_matrix(30)
    rows = open_table(K).as_matrix().read(0, 30).X
    basis, kept = Basis.empty(Precomputed(30), 32, rows.dtype).append(rows[[3, 9, 3, 20]], np.array([3, 9, 3, 20]))
    assert kept.tolist() == [0, 1, 3]  # a column twice is dependent
    assert_array_equal(basis.gram(), K[np.ix_([3, 9, 20], [3, 9, 20])])
    again = pickle.loads(pickle.dumps(basis))
    assert_array_equal(again.block(rows), K[:, [3, 9, 20]])
    residual = np.diagonal(K) - np.einsum("ij,ij->i", basis.features(rows), basis.features(rows))
    np.testing.assert_allclose(basis.residual(rows), np.maximum(residual, 0.0), atol=1e-12)
    assert prepare_gradient(Precomputed(30), rows[:4])(rows, np.ones((30, 4))).shape == (0,)


def test_errors():
    rows = open_table(a_matrix(10)).as_matrix().read(0, 10).X
    with pytest.raises(ShapeError, match="the kernel matrix has 10 columns, and the kernel is of 4"):
        Precomputed(4).prepare(rows)
    new = rows.copy()
    places_in(new)[:], own_in(new)[:] = -1.0, np.nan
    with pytest.raises(ShapeError, match="some points of the basis have no column"):
        Precomputed().prepare(new)
    with pytest.raises(ParameterError, match=r"k\(x, x\) of new rows"):
        Precomputed().diagonal(new)
    assert Precomputed().with_lengthscale(2.0) == Precomputed()
