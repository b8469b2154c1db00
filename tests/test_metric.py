"""The metric of a scaler: a linear map of the scaled columns, with the same bits in every block."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.engine import Session
from streamkernel.errors import ParameterError, ShapeError
from streamkernel.metric import MetricScaler
from streamkernel.selection import RowCache
from streamkernel.table import Scaler, open_table


def _scaler(p: int, r: int, seed: int = 0) -> MetricScaler:
    rng = np.random.default_rng(seed)
    return MetricScaler(Scaler(rng.normal(size=p), rng.uniform(0.5, 2.0, p)), rng.normal(size=(p, r)))


@given(p=st.integers(1, 40), r=st.integers(1, 40), b=st.integers(0, 30), seed=st.integers(0, 9))
def test_rows_are_scaled_then_mapped(p: int, r: int, b: int, seed: int) -> None:
    scaler, X = _scaler(p, r, seed), np.random.default_rng(seed + 1).normal(3.0, 2.0, size=(b, p))
    expected = (X - scaler.columns.mean) / scaler.columns.scale @ scaler.metric
    found = scaler.apply(X, np.float64)
    assert found.flags.c_contiguous
    assert found.shape == (b, r)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(scaler.apply(X.astype(np.float32), np.float32).dtype, np.float32)


@given(p=st.integers(1, 70), r=st.integers(1, 33), cut=st.integers(0, 50), seed=st.integers(0, 9))
def test_a_row_has_the_same_bits_in_every_block(p: int, r: int, cut: int, seed: int) -> None:
    scaler, X = _scaler(p, r, seed), np.random.default_rng(seed).normal(size=(50, p))
    whole = scaler.apply(X, np.float64)
    parts = [scaler.apply(X[:cut], np.float64), scaler.apply(X[cut:], np.float64)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(scaler.apply(X[7:8], np.float64), whole[7:8])


def test_rows_in_single_precision_are_mapped_in_double() -> None:
    scaler = MetricScaler(Scaler(np.full(2, 1e4), np.ones(2)), np.array([[1.0], [-1.0]]))
    X = np.array([[1e4 + 0.5, 1e4 + 0.25]], dtype=np.float32)
    assert scaler.apply(X, np.float32)[0, 0] == np.float32(X[0, 0].astype(float) - X[0, 1].astype(float))


def test_large_blocks_are_mapped_in_pieces() -> None:
    scaler, X = _scaler(300, 2), np.random.default_rng(0).normal(size=(700, 300)).astype(np.float32)
    expected = np.concatenate([scaler.apply(X[i : i + 1], np.float32) for i in range(len(X))])
    np.testing.assert_array_equal(scaler.apply(X, np.float32), expected)


def test_columns_in_another_order_give_the_same_rows() -> None:
    scaler, X, order = _scaler(5, 3), np.random.default_rng(0).normal(size=(4, 5)), [3, 0, 4, 1, 2]
    found = scaler.of_columns(order).apply(X[:, order], np.float64)
    np.testing.assert_allclose(found, scaler.apply(X, np.float64), rtol=1e-12)


def test_a_pickled_scaler_is_equal() -> None:
    scaler = _scaler(3, 2)
    scaler.apply(np.zeros((1, 3)), np.float64)
    again = pickle.loads(pickle.dumps(scaler))
    assert again == scaler
    assert hash(again) == hash(scaler)
    assert again != _scaler(3, 2, 1)
    assert scaler.to_config() != _scaler(3, 2, 1).to_config()


@pytest.mark.parametrize("metric", [np.ones((2, 2)), np.ones((3, 0)), np.ones(3), np.array([[1.0], [np.nan], [1.0]])])
def test_a_map_that_fits_no_columns_is_refused(metric: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="metric"):
        MetricScaler(Scaler(np.zeros(3), np.ones(3)), metric)


def test_rows_with_other_columns_are_refused() -> None:
    with pytest.raises(ShapeError, match="3 columns"):
        _scaler(3, 2).apply(np.zeros((2, 4)), np.float64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cached_rows_have_the_bits_of_blocks(dtype: type) -> None:
    X: np.ndarray = np.random.default_rng(0).normal(5.0, 3.0, size=(200, 6)).astype(dtype)
    scaler = _scaler(6, 4)
    table = open_table(X).with_scaler(scaler)
    rows = np.array([150, 3, 77])
    cache = RowCache.of(table, Session())
    found = cache.get(rows).X
    assert found.dtype == dtype
    assert table.width == 4
    np.testing.assert_array_equal(found, table.read(0, 200).X[rows])
