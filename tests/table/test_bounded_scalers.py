"""Scalers with ends: each map against plain NumPy, with the same bits in every block."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.errors import NonFiniteDataError, ParameterError, ShapeError
from streamkernel.metric import MetricScaler
from streamkernel.table import ClippedScaler, RankScaler, RowScaler, Scaler, open_table


def _clipped(p: int, seed: int = 0) -> ClippedScaler:
    rng = np.random.default_rng(seed)
    middle, reach = rng.normal(size=p), rng.uniform(0.1, 2.0, size=p)
    return ClippedScaler(rng.normal(size=p), rng.uniform(0.5, 2.0, p), middle - reach, middle + reach)


def _ranks(p: int, seed: int = 0) -> RankScaler:
    """A map of p columns, of 1, 2, 3, ... knots."""
    rng = np.random.default_rng(seed)
    counts = np.arange(1, p + 1)
    knots = np.concatenate([np.sort(rng.normal(size=k)) for k in counts])
    values = np.concatenate([np.sort(rng.normal(size=k)) for k in counts])
    return RankScaler(rng.normal(size=p), knots, values, counts)


def _plain(scaler: RowScaler, X: np.ndarray) -> np.ndarray:
    """The map, value by value."""
    if isinstance(scaler, ClippedScaler):
        return (np.minimum(np.maximum(X, scaler.lower), scaler.upper) - scaler.mean) / scaler.scale
    assert isinstance(scaler, RankScaler)
    out, start = np.empty(X.shape), 0
    for j, count in enumerate(scaler.counts):
        knots, values = (part[start : start + count] for part in (scaler.knots, scaler.values))
        start += count
        for i, x in enumerate(X[:, j]):
            k = int(np.searchsorted(knots, x))
            if k in (0, count):
                out[i, j] = values[min(k, count - 1)]
            else:
                share = (x - knots[k - 1]) / (knots[k] - knots[k - 1])
                out[i, j] = (1.0 - share) * values[k - 1] + share * values[k]
    return out


MAKERS = pytest.mark.parametrize("make", [_clipped, _ranks])


@MAKERS
@given(p=st.integers(1, 30), b=st.integers(0, 20), seed=st.integers(0, 9), far=st.sampled_from([1.0, 1e6, 1e300]))
def test_the_map_is_that_of_its_formula(make, p: int, b: int, seed: int, far: float) -> None:
    scaler, X = make(p, seed), far * np.random.default_rng(seed + 1).normal(size=(b, p))
    found = scaler.apply(X, np.float64)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, _plain(scaler, X), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(scaler.apply(X, np.float32), found.astype(np.float32))


@MAKERS
@given(p=st.integers(1, 70), cut=st.integers(0, 400), seed=st.integers(0, 9))
def test_a_row_has_the_same_bits_in_every_block(make, p: int, cut: int, seed: int) -> None:
    scaler, X = make(p, seed), np.random.default_rng(seed).normal(size=(400, p))
    whole = scaler.apply(X, np.float64)
    parts = [scaler.apply(X[:cut], np.float64), scaler.apply(np.asfortranarray(X[cut:]), np.float64)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(scaler.apply(X[7:8], np.float64), whole[7:8])


@MAKERS
def test_pieces_of_large_blocks_are_rows_alone(make) -> None:
    scaler, X = make(300), np.random.default_rng(0).normal(size=(700, 300)).astype(np.float32)
    alone = np.concatenate([scaler.apply(X[i : i + 1], np.float32) for i in range(0, 700, 37)])
    np.testing.assert_array_equal(scaler.apply(X, np.float32)[::37], alone)


@MAKERS
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_ends_do_not_hide_what_is_not_finite(make, value: float) -> None:
    scaler, X = make(3), np.zeros((5, 3))
    X[2, 1] = value
    assert np.isnan(scaler.apply(X, np.float32)[2, 1])
    with pytest.raises(NonFiniteDataError, match="row 2, column 'x1'"):
        open_table(X).with_scaler(scaler).read(0, 5)


@MAKERS
@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.float16, np.longdouble])
def test_every_stored_type_is_mapped_as_double(make, dtype: type) -> None:
    X = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    np.testing.assert_array_equal(make(3).apply(X, np.float64), make(3).apply(X.astype(np.float64), np.float64))


@MAKERS
def test_rows_between_the_ends_have_the_image_that_they_came_from(make) -> None:
    scaler = make(6)
    Z = scaler.apply(np.random.default_rng(0).normal(size=(50, 6)), np.float64)
    np.testing.assert_allclose(scaler.apply(scaler.unscaled(Z), np.float64), Z, rtol=1e-9, atol=1e-9)
    assert not scaler.invertible


@MAKERS
def test_columns_in_another_order_and_pickled(make) -> None:
    scaler, X, order = make(5), np.random.default_rng(0).normal(size=(4, 5)), [3, 0, 4]
    some = scaler.of_columns(order)
    np.testing.assert_array_equal(some.apply(X[:, order], np.float64), scaler.apply(X, np.float64)[:, order])
    again = pickle.loads(pickle.dumps(scaler))
    assert again == scaler
    assert hash(again) == hash(scaler)
    assert again.to_config() == scaler.to_config()
    assert make(5, 1) != scaler
    assert make(5, 1).to_config() != scaler.to_config()
    assert scaler != Scaler(np.zeros(5), np.ones(5))


@MAKERS
def test_a_metric_maps_after_the_ends(make) -> None:
    columns, T = make(4), np.random.default_rng(2).normal(size=(4, 2))
    scaler, X = MetricScaler(columns, T), 9.0 * np.random.default_rng(3).normal(size=(20, 4))
    np.testing.assert_allclose(scaler.apply(X, np.float64), columns.apply(X, np.float64) @ T, rtol=1e-12, atol=1e-12)


@MAKERS
def test_rows_with_other_columns_are_refused(make) -> None:
    with pytest.raises(ShapeError, match="3 columns"):
        make(3).apply(np.zeros((2, 4)), np.float64)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"lower": np.array([0.0, 2.0])}, "column 1 of a scaler are 2 and 1"),
        ({"upper": np.ones(3)}, "upper end"),
        ({"lower": np.array([0.0, -np.inf])}, "lower end.*finite"),
        ({"scale": np.zeros(2)}, "positive"),
        ({"mean": np.array([0.0, np.nan])}, "mean.*finite"),
    ],
)
def test_ends_that_fit_no_columns_are_refused(changed: dict[str, np.ndarray], words: str) -> None:
    parts = {"mean": np.zeros(2), "scale": np.ones(2), "lower": np.zeros(2), "upper": np.ones(2)}
    with pytest.raises(ParameterError, match=words):
        ClippedScaler(**(parts | changed))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"counts": np.array([3, 0])}, "at least 1"),
        ({"counts": np.array([3])}, "2 columns"),
        ({"counts": np.array([1.0, 2.0])}, "2 columns"),
        ({"counts": np.array([2, 2])}, "4 numbers"),
        ({"knots": np.array([0.0, 0.0, 0.0])}, "ascend"),
        ({"knots": np.array([0.0, -1e308, 1e308])}, "ascend"),
        ({"values": np.array([0.0, 1.0, 0.5])}, "not fall"),
        ({"values": np.array([0.0, 1.0, np.inf])}, "finite"),
    ],
)
def test_knots_that_fit_no_columns_are_refused(changed: dict[str, np.ndarray], words: str) -> None:
    parts = {
        "mean": np.zeros(2),
        "knots": np.array([5.0, 1.0, 2.0]),
        "values": np.zeros(3),
        "counts": np.array([1, 2]),
    }
    RankScaler(**parts)
    with pytest.raises(ParameterError, match=words):
        RankScaler(**(parts | changed))
