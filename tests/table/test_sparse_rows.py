"""Sparse rows as a table: blocks, statistics and keys are those of the dense rows."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sparse_rows import in_pairs, sparse_rows
from strategies import seeds

from streamkernel.errors import DTypeError, NonFiniteDataError, NumericRangeError, ParameterError, ShapeMismatchError
from streamkernel.pairs import as_csr
from streamkernel.reductions import Moments
from streamkernel.table import ColumnStatistics, SparseScaler, open_table
from streamkernel.table.row_keys import Rounding, distinct_rows, distinct_sparse_rows, row_keys, sparse_row_keys


@given(seeds, st.integers(1, 40), st.integers(1, 9), st.booleans(), st.integers(1, 7))
def test_statistics_are_those_of_the_dense_rows(seed, m, d, weighted, parts):
    X = sparse_rows(m, d, 2.0, seed)
    pairs, dense = in_pairs(X), X.toarray()
    w = np.random.default_rng(seed).integers(0, 3, m).astype(float) if weighted else None
    whole = ColumnStatistics.of(dense, w)
    cuts = np.linspace(0, m, min(parts, m) + 1).astype(int)
    found = None
    for first, last in pairwise(cuts):
        part = ColumnStatistics.of_pairs(pairs[first:last], d, None if w is None else w[first:last])
        found = part if found is None else found.merge(part)
    assert (found.count, found.weight) == (whole.count, whole.weight)
    for name in ("mean", "std"):
        assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-9, atol=1e-12)
    assert (found.minimum == whole.minimum).all()
    assert (found.maximum == whole.maximum).all()


@given(seeds, st.integers(1, 40), st.integers(1, 300), st.integers(0, 3))
def test_keys_are_those_of_the_dense_rows(seed, m, d, more):
    X = sparse_rows(m, d, 2.0, seed)
    pairs, dense = in_pairs(X, more), X.toarray()
    for rounding in (Rounding(52), Rounding(20), Rounding(13), Rounding(10), Rounding(10, edges=2)):
        assert (sparse_row_keys(pairs, d, rounding) == row_keys(dense, rounding)).all()
    # No origin is taken off, so that in few digits other rows may be alike than those of the dense rows.
    assert len(distinct_sparse_rows(pairs, d)) <= len(np.unique(dense, axis=0))
    assert (distinct_sparse_rows(pairs[:1], d) == distinct_rows(dense[:1])).all()


def test_keys_of_more_entries_than_one_step_takes():
    dense = np.random.default_rng(0).standard_normal((150, 700))
    pairs = np.concatenate([np.tile(np.arange(700.0), (150, 1)), dense], axis=1)
    for rounding in (Rounding(52), Rounding(10, edges=2)):
        assert (sparse_row_keys(pairs, 700, rounding) == row_keys(dense, rounding)).all()
        assert (sparse_row_keys(pairs[:0], 700, rounding) == row_keys(dense[:0], rounding)).all()


def test_blocks_are_the_rows_in_any_cut():
    X = sparse_rows(2500, 40, 3.0)
    table = open_table(X, np.arange(2500.0), sparse=True)
    assert (table.n_rows, table.n_features, table.sparse, table.dtype) == (2500, 40, True, np.float64)
    for rows in (1, 700, 2500):
        for copy in (table, pickle.loads(pickle.dumps(table)).slice(900, 1100)):
            blocks = list(copy.blocks(copy.start, copy.stop, rows))
            found = scipy.sparse.vstack([as_csr(block.X, 40) for block in blocks])
            assert (found != X[copy.start : copy.stop]).nnz == 0
            assert (np.concatenate([block.Y[:, 0] for block in blocks]) == np.arange(copy.start, copy.stop)).all()


@pytest.mark.parametrize("kind", ["csc_matrix", "coo_array", "csr_matrix", "lil_matrix", "dia_matrix"])
def test_any_format_of_scipy_and_entries_that_are_repeated_or_0(kind):
    X = sparse_rows(20, 8, 2.0)
    assert (as_csr(open_table(getattr(scipy.sparse, kind)(X), sparse=True).read(0, 20).X, 8) != X).nnz == 0
    messy = scipy.sparse.csr_array(([1.0, 2.0, 3.0, 0.0], [1, 0, 1, 2], [0, 4]), shape=(1, 3))
    before = messy.indices.tolist()
    table = open_table(messy, sparse=True)
    assert table.read(0, 1).X.tolist() == [[0.0, 1.0, 2.0, 4.0]]
    assert messy.indices.tolist() == before  # the caller's own is not changed
    assert table.fingerprint == open_table(scipy.sparse.csr_array([[2.0, 4.0, 0.0]]), sparse=True).fingerprint


def test_a_full_row_makes_chunks_of_fewer_rows():
    X = scipy.sparse.vstack([sparse_rows(50, 8, 2.0), np.ones((1, 8))])
    wide = scipy.sparse.csr_array((X.shape[0], 100_000))
    assert open_table(X, sparse=True).chunk_rows == 1024
    full = scipy.sparse.vstack([wide, scipy.sparse.csr_array(np.ones((1, 100_000)))], format="csr")
    table = open_table(full, sparse=True)
    assert table.chunk_rows == 32
    assert table.chunk_rows * table.bytes_per_row < 64 << 20
    assert [len(block) for block in table.blocks(0, table.n_rows, 1000)] == [table.n_rows]


def test_no_entry_at_all():
    table = open_table(scipy.sparse.csr_array((3, 5)), sparse=True)
    assert table.read(0, 3).X.tolist() == [[-1.0, 0.0]] * 3
    found = ColumnStatistics.of_pairs(table.read(0, 3).X, 5)
    assert (found.std.tolist(), found.maximum.tolist()) == ([0.0] * 5, [0.0] * 5)


def test_the_scaler_divides_and_is_undone():
    X = sparse_rows(30, 10, 3.0)
    pairs, dense = in_pairs(X), X.toarray()
    scaler = SparseScaler.of(ColumnStatistics.of_pairs(pairs, 10))
    scaled = scaler.apply(pairs, np.float64)
    std = np.where(dense.std(axis=0) > 0.0, dense.std(axis=0), 1.0)
    assert_allclose(as_csr(scaled, 10).toarray(), dense / std, rtol=1e-12)
    assert_allclose(scaler.unscaled(scaled), pairs, rtol=1e-15)
    with pytest.raises(ParameterError):
        SparseScaler(np.array([1.0, 0.0]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_no_number_is_named(value):
    X = sparse_rows(30, 10, 3.0).toarray()
    X[17, 4] = value
    with pytest.raises(NonFiniteDataError, match=r"row 17, column 'x4'"):
        list(open_table(scipy.sparse.csr_array(X), sparse=True).blocks(0, 30, 7))
    X[17, 4] = 1e200
    with pytest.raises(NumericRangeError, match="row 17"):
        list(open_table(scipy.sparse.csr_array(X), sparse=True).blocks(0, 30, 7))


def test_what_sparse_rows_cannot_do_is_refused_in_one_line():
    X = sparse_rows(30, 10, 3.0)
    with pytest.raises(ParameterError, match=r"X is sparse \(30 x 10, \d+ entries\).*give dense rows") as error:
        open_table(X)
    assert "\n" not in str(error.value)
    with pytest.raises(ParameterError, match="sparse"):
        open_table(open_table(X, sparse=True))
    table = open_table(X, sparse=True)
    with pytest.raises(ParameterError, match="order"):
        table.reordered(range(9, -1, -1))
    with pytest.raises(ParameterError, match="row weights"):
        table.weighted_by("x3")
    with pytest.raises(DTypeError, match="complex"):
        open_table(X.astype(complex), sparse=True)
    with pytest.raises(ShapeMismatchError):
        open_table(X, np.zeros(29), sparse=True)
    with pytest.raises(DTypeError):
        open_table(np.zeros((30, 1)), X[:, [0]])


def test_moments_know_sparse_rows():
    X = sparse_rows(30, 10, 3.0)
    table = open_table(X, np.arange(30.0), sparse=True)
    work = Moments.of(table, 1)
    found = work.finalize(work.map_block(table.read(0, 30)))
    assert_allclose(found.X.std, X.toarray().std(axis=0), atol=1e-12)
    assert found.y.mean[0] == 14.5
