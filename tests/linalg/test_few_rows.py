"""Products of few rows and a matrix, against NumPy and against themselves on parts of the columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.linalg import subtract_few


@given(st.integers(0, 4), st.integers(0, 9), st.integers(0, 1100), st.integers(0, 2**32 - 1))
def test_it_is_the_product(few: int, count: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    coefficients, rows, start = (
        rng.standard_normal(shape) for shape in ((few, count), (count, columns), (few, columns))
    )
    found = start.copy()
    subtract_few(coefficients, rows, found)
    np.testing.assert_allclose(found, start - coefficients @ rows, rtol=0.0, atol=1e-13)


def test_rows_of_single_precision_are_summed_in_double() -> None:
    rng = np.random.default_rng(5)
    coefficients, rows, start = rng.standard_normal((2, 90)), rng.standard_normal((90, 600)), np.zeros((2, 600))
    single = rows.astype(np.float32)
    found = start.copy()
    subtract_few(coefficients, single, found)
    subtract_few(coefficients, single.astype(np.float64), start)
    np.testing.assert_allclose(found, start, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("count", [1, 3, 4, 250])
def test_a_column_has_the_same_bits_among_others(count: int) -> None:
    rng = np.random.default_rng(count)
    coefficients, rows, start = rng.standard_normal((3, count)), rng.standard_normal((count, 1300)), np.zeros((3, 1300))
    subtract_few(coefficients, rows, start)
    for first, stop in ((0, 1), (0, 700), (511, 513), (5, 1300)):
        part = np.zeros((3, stop - first))
        subtract_few(coefficients, np.ascontiguousarray(rows[:, first:stop]), part)
        np.testing.assert_array_equal(part, start[:, first:stop])
    for q in range(3):
        alone = np.zeros((1, 1300))
        subtract_few(np.ascontiguousarray(coefficients[q : q + 1]), rows, alone)
        np.testing.assert_array_equal(alone[0], start[q])


@pytest.mark.parametrize("shape", [(2, 3), (1, 4), (2, 5)])
def test_shapes_that_do_not_fit(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="is not"):
        subtract_few(np.zeros(shape), np.zeros((4, 7)), np.zeros((2, 7)))
