"""Scaling in float64 and statistics that merge: checked against plain NumPy."""

import json

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.table import ColumnStatistics, Scaler, open_table


def test_scaler_centres_offset_float32_rows_in_float64():
    rng = np.random.default_rng(0)
    X = (1e4 + rng.standard_normal((500, 6))).astype(np.float32)
    exact = X.astype(np.float64)
    scaler = Scaler(exact.mean(axis=0), exact.std(axis=0))
    scaled = scaler.apply(X, np.float32)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, (exact - scaler.mean) / scaler.scale, rtol=1e-6, atol=1e-6)
    naive = (X - scaler.mean.astype(np.float32)) / scaler.scale.astype(np.float32)
    assert np.abs(naive - scaled).max() > 1e-5  # what the float64 path is for


def test_scaler_survives_json_bit_for_bit():
    rng = np.random.default_rng(1)
    scaler = Scaler(rng.standard_normal(9), rng.random(9) + 0.1)
    assert Scaler.from_config(json.loads(json.dumps(scaler.to_config()))) == scaler


@pytest.mark.parametrize(
    ("mean", "scale"), [([0.0], [0.0]), ([0.0], [-1.0]), ([np.nan], [1.0]), ([0.0], [np.inf]), ([0.0, 1.0], [1.0])]
)
def test_scaler_refuses(mean, scale):
    with pytest.raises(ParameterError):
        Scaler(np.array(mean), np.array(scale))


def test_scaler_of_another_width_is_refused():
    scaler = Scaler(np.zeros(3), np.ones(3))
    with pytest.raises(ShapeError, match="3 columns"):
        scaler.apply(np.zeros((2, 4)), np.float64)
    with pytest.raises(ShapeError):
        open_table(np.ones((4, 2))).with_scaler(scaler)


def test_blocks_are_scaled_and_wide_rows_too():
    X = np.random.default_rng(2).standard_normal((40, 70_000)).astype(np.float32)
    scaler = Scaler(np.full(70_000, 0.5), np.full(70_000, 2.0))
    block = open_table(X).with_scaler(scaler).read(3, 40)
    np.testing.assert_array_equal(block.X, ((X[3:].astype(np.float64) - 0.5) / 2.0).astype(np.float32))


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 60), st.integers(1, 4)), elements=st.floats(-1e6, 1e6)),
    st.lists(st.integers(1, 59), max_size=5),
    st.sampled_from([0.0, 1e8, -3e5]),
)
def test_statistics_of_parts_equal_numpy(X, cuts, offset):
    X = X + offset
    parts = [part for part in np.split(X, sorted({cut for cut in cuts if cut < len(X)})) if len(part)]
    merged = ColumnStatistics.of(parts[0])
    for part in parts[1:]:
        merged = merged.merge(ColumnStatistics.of(part))
    exact = X.astype(np.longdouble)
    assert merged.count == len(X)
    scale = np.abs(X).max() + 1e-300
    np.testing.assert_allclose(merged.mean, exact.mean(axis=0).astype(float), rtol=0, atol=1e-14 * scale)
    spread = float(np.ptp(X, axis=0).max())
    # Squares of deviations below 1e-150 are no longer ordinary numbers.
    np.testing.assert_allclose(
        merged.std, exact.std(axis=0).astype(float), rtol=1e-11, atol=1e-12 * spread + 1e-15 * scale + 1e-150
    )
    np.testing.assert_array_equal(merged.minimum, X.min(axis=0))
    np.testing.assert_array_equal(merged.maximum, X.max(axis=0))


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=st.floats(-1e6, 1e6)),
    st.lists(st.integers(1, 39), max_size=5),
    st.sampled_from([0.0, 1e8, -3e5]),
    st.data(),
)
def test_weighted_statistics_of_parts_are_those_of_repeated_rows(X, cuts, offset, data):
    X = X + offset
    counts = data.draw(hnp.arrays(np.int64, len(X), elements=st.integers(0, 4)))
    cuts = sorted({cut for cut in cuts if cut < len(X)})
    pairs = [pair for pair in zip(np.split(X, cuts), np.split(counts.astype(float), cuts), strict=True) if len(pair[0])]
    merged = ColumnStatistics.of(*pairs[0])
    for part in pairs[1:]:
        merged = merged.merge(ColumnStatistics.of(*part))
    assert (merged.count, merged.weight) == (len(X), counts.sum())
    if not counts.any():
        assert not merged.mean.any()
        assert not merged.std.any()
        return
    repeated = np.repeat(X, counts, axis=0)
    exact, scale = repeated.astype(np.longdouble), np.abs(X).max() + 1e-300
    np.testing.assert_allclose(merged.mean, exact.mean(axis=0).astype(float), rtol=0, atol=1e-14 * scale)
    spread = float(np.ptp(X, axis=0).max())
    np.testing.assert_allclose(
        merged.std, exact.std(axis=0).astype(float), rtol=1e-11, atol=1e-12 * spread + 1e-15 * scale + 1e-150
    )
    np.testing.assert_array_equal(merged.minimum, repeated.min(axis=0))
    np.testing.assert_array_equal(merged.maximum, repeated.max(axis=0))


def test_weights_of_one_give_the_bits_of_no_weights():
    X = np.random.default_rng(4).standard_normal((500, 3)) + 1e6
    plain = ColumnStatistics.of(X[:200]).merge(ColumnStatistics.of(X[200:]))
    ones = ColumnStatistics.of(X[:200], np.ones(200)).merge(ColumnStatistics.of(X[200:], np.ones(300)))
    mixed = ColumnStatistics.of(X[:200], np.ones(200)).merge(ColumnStatistics.of(X[200:]))
    assert "weight" not in plain.to_config()
    assert plain.to_arrays().keys() == {"count", "mean", "std", "minimum", "maximum"}
    assert ones.to_config() == mixed.to_config() == {**plain.to_config(), "weight": 500.0}
    for again in (
        ColumnStatistics.from_config(json.loads(json.dumps(ones.to_config()))),
        ColumnStatistics.from_arrays(ones.to_arrays("a_"), "a_"),
        ones.of_columns([0, 1, 2]),
    ):
        assert again.to_config() == ones.to_config()
    assert (plain.total, ones.total) == (500.0, 500.0)


def test_rows_of_weight_0_change_only_the_count():
    X = np.random.default_rng(5).standard_normal((60, 2))
    weights = np.random.default_rng(6).uniform(0.1, 2.0, 60)
    alone = ColumnStatistics.of(X, weights)
    odd = np.full((3, 2), 1e300)  # its square overflows
    with_odd = ColumnStatistics.of(np.concatenate([odd, X]), np.concatenate([np.zeros(3), weights]))
    none = ColumnStatistics.of(odd, np.zeros(3))
    assert none.total == 0.0
    for found in (with_odd, alone.merge(none), none.merge(alone)):
        assert found.to_config() == {**alone.to_config(), "count": 63}
    assert none.merge(none).to_config() == {**none.to_config(), "count": 6}


def test_statistics_do_not_cancel_and_name_constant_columns():
    rng = np.random.default_rng(3)
    X = np.column_stack([1e9 + rng.standard_normal(1000), np.full(1000, 7.25)])
    found = ColumnStatistics.of(X[:300]).merge(ColumnStatistics.of(X[300:]))
    np.testing.assert_allclose(found.std[0], X[:, 0].std(), rtol=1e-9)
    assert found.constant.tolist() == [False, True]
    assert found.std[1] == 0.0
    again = ColumnStatistics.from_config(json.loads(json.dumps(found.to_config())))
    np.testing.assert_array_equal(again.std, found.std)
    arrays = {"mean": np.zeros(2), **found.to_arrays("y_")}
    assert all(isinstance(values, np.ndarray) for values in arrays.values())
    back = ColumnStatistics.from_arrays(arrays, "y_")
    assert back.to_config() == found.to_config()
    assert back.merge(back).count == 2000


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("power", [-1000, -700, -500, 500, 700, 1000])
@pytest.mark.parametrize("form", ["dense", "sparse", "merged"])
def test_squares_that_vanish_or_overflow_change_no_digit(form, power, weighted):
    """Powers of two times a column are the powers of two times its statistics; other columns keep their bits."""
    rng = np.random.default_rng(5)
    X, w = rng.standard_normal((60, 3)), rng.integers(0, 3, 60).astype(float) if weighted else None
    X[rng.random(X.shape) < 0.3] = 0.0
    large = X.copy()
    large[:, 1] = np.ldexp(X[:, 1], power)

    def of(rows):
        if form == "sparse":
            rows = scipy.sparse.csr_array(rows)
            return ColumnStatistics.of_csr(rows.indptr, rows.indices, rows.data, 3, w)
        parts = [slice(0, 25), slice(25, 60)] if form == "merged" else [slice(0, 60)]
        first, *others = (ColumnStatistics.of(rows[part], None if w is None else w[part]) for part in parts)
        return first.merge(others[0]) if others else first

    plain, found = of(X), of(large)
    assert (found.count, found.weight) == (plain.count, plain.weight)
    for name in ("mean", "std", "minimum", "maximum"):
        expected = getattr(plain, name).copy()
        expected[1] = np.ldexp(expected[1], power)
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-14, err_msg=name)
        np.testing.assert_array_equal(getattr(found, name)[[0, 2]], expected[[0, 2]], err_msg=name)


def test_equal_values_of_any_size_are_constant_and_others_are_not():
    values = np.array([5e-324, 1e-200, 1e200, 1.7e308])
    assert ColumnStatistics.of(np.tile(values, (4, 1))).constant.all()
    both = ColumnStatistics.of(np.vstack([values, -values]))
    np.testing.assert_allclose(both.std, values, rtol=1e-15)
    assert not both.constant.any()
