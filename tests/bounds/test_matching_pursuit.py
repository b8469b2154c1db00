"""The bound for matching pursuit: printed numbers, its inverse, and where it says nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.bounds import matching_pursuit_bound
from streamkernel.errors import ParameterError


def test_printed_numbers() -> None:
    small, large = matching_pursuit_bound(450, 17, 20), matching_pursuit_bound(10**6, 100, 10**4)
    assert f"{small.values:.4g}" == "1.844"
    assert small.vacuous
    assert small.reported == 1.0
    assert f"{large.values:.3f}" == "0.170"
    assert not large.vacuous
    assert large.reported == large.values


@given(st.integers(20, 2000), st.data(), st.floats(1e-6, 0.5))
def test_solves_the_union_of_consistent_bounds(rows: int, data: st.DataObject, delta: float) -> None:
    """m^2 C(m,k) C(m-k,q) 2 (4 e N / (k+1))^(k+1) 2^(-N eps / 2) = delta at the bound (the paper's proof, eq. (6))."""
    k = data.draw(st.integers(1, rows // 4))
    q = data.draw(st.integers(0, rows // 4))
    N = rows - k - q
    eps = float(matching_pursuit_bound(rows, k, q, delta).values)
    sets = 2 * math.log2(rows) + math.log2(math.comb(rows, k)) + math.log2(math.comb(rows - k, q))
    dichotomies = 1 + (k + 1) * math.log2(4 * math.e * N / (k + 1))
    assert sets + dichotomies - N * eps / 2 == pytest.approx(math.log2(delta), abs=1e-6 * max(1.0, sets + dichotomies))


@given(st.integers(20, 10**6), st.data(), st.floats(1e-6, 0.5))
def test_order_of_the_bounds(rows: int, data: st.DataObject, delta: float) -> None:
    k = data.draw(st.integers(1, rows // 4))
    q = data.draw(st.integers(0, rows // 8))
    views = data.draw(st.sampled_from([1, 2]))
    found = matching_pursuit_bound(rows, k, [q, q + 1], delta, views=views)
    assert np.all(found.values <= found.relaxed * (1 + 1e-12))
    assert found.values[0] < found.values[1] or not np.isfinite(found.values[0])
    assert np.all(found.values >= np.array([q, q + 1]) / (rows - k))
    surer, valid = matching_pursuit_bound(rows, k, [q, q + 1], delta / 2, views=views), np.isfinite(found.values)
    assert np.all(surer.values[valid] > found.values[valid])
    np.testing.assert_allclose(
        matching_pursuit_bound(rows, k, q, delta, gammas=8).values, matching_pursuit_bound(rows, k, q, delta / 8).values
    )


@pytest.mark.parametrize("views", [1, 2])
def test_goes_to_nothing_as_rows_grow(views: int) -> None:
    """A whole curve of sizes at once; wrong rows may grow too, as long as their share does not stay."""
    sizes = np.arange(1, 20)
    curves = [
        matching_pursuit_bound(rows, sizes, np.full(19, int(rows**0.5) // 10), views=views).values
        for rows in (10**3, 10**4, 10**6, 10**8)
    ]
    assert np.all(np.diff(curves, axis=0) < 0)
    assert np.all(curves[-1] < 1e-3)


def test_a_path_has_a_least_bound() -> None:
    errors = (1e5 * 0.8 ** np.arange(1, 61)).astype(int)
    found = matching_pursuit_bound(10**6, np.arange(1, 61), errors)
    assert found.values.shape == (60,)
    assert 0 < int(np.argmin(found.values)) < 59


def test_the_curve_of_a_path_knows_its_minimum() -> None:
    errors = np.array([400, 200, 60, 55, 54, 54])
    found = matching_pursuit_bound(450, np.arange(1, 7), errors)
    assert found.best_size == 4
    assert found.argmin == 3
    assert found.minimum == found.values[3] == found.values.min()
    assert found.says_nothing  # as at the paper's own size, and the minimum compares sizes all the same
    np.testing.assert_allclose(found.observed, errors / (450 - np.arange(1, 7)))
    one = matching_pursuit_bound(10**6, 100, 10**4)
    assert (one.best_size, one.minimum, one.says_nothing) == (100, float(one.values), False)
    np.testing.assert_array_equal(matching_pursuit_bound(5, [5], [0]).observed, 0.0)


@given(st.integers(50, 10**6), st.data())
def test_two_views_have_twice_the_dimensions(rows: int, data: st.DataObject) -> None:
    """C(m, k) stays, the hyperplanes' k becomes 2k: solved for eps as above."""
    k, q = data.draw(st.integers(1, rows // 8)), data.draw(st.integers(0, rows // 4))
    one, two = (matching_pursuit_bound(rows, k, q, views=views) for views in (1, 2))
    N = rows - k - q
    more = (2 * k + 1) * math.log2(4 * math.e * N / (2 * k + 1)) - (k + 1) * math.log2(4 * math.e * N / (k + 1))
    assert float(two.values - one.values) == pytest.approx(2 / N * more, rel=1e-6)
    assert two.values > one.values


def test_too_few_right_rows_bound_nothing() -> None:
    found = matching_pursuit_bound(10, [5, 5, 10], [0, 4, 0])
    np.testing.assert_array_equal(found.values, np.inf)
    np.testing.assert_array_equal(found.reported, 1.0)
    assert np.all(found.vacuous)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((10, 0, 0), "functions"),
        ((10, 11, 0), "functions"),
        ((10, 4, 7), "errors"),
        ((10, 4, -1), "errors"),
        ((10, 4, 1.5), "whole"),
        ((0, 4, 1), "rows"),
        ((10, 4, 1, 2.0), "delta"),
    ],
)
def test_bad_counts(arguments: tuple[Any, ...], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        matching_pursuit_bound(*arguments)
