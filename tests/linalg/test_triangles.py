"""Upper triangles, row after row, and the matrices that they are of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import few_examples

from streamkernel.linalg import from_upper_triangle, upper_triangle


@given(w=st.integers(0, 40), leading=st.lists(st.integers(0, 3), max_size=2), single=st.booleans())
@few_examples(0.5)
def test_the_upper_triangle_comes_back_and_nothing_else(w: int, leading: list[int], single: bool) -> None:
    dtype = np.float32 if single else np.float64
    matrices = np.random.default_rng(w).standard_normal((*leading, w, w)).astype(dtype)
    triangles = upper_triangle(matrices)
    np.testing.assert_array_equal(triangles, matrices[..., *np.triu_indices(w)])
    assert triangles.dtype == dtype
    found = from_upper_triangle(triangles)
    np.testing.assert_array_equal(found, np.triu(matrices))
    assert (found.dtype, found.flags.c_contiguous) == (dtype, True)


@pytest.mark.parametrize("w", [1, 2, 511, 4_001])
def test_the_width_follows_from_the_length(w: int) -> None:
    triangle = np.broadcast_to(np.float32(1.0), w * (w + 1) // 2)
    assert from_upper_triangle(triangle).shape == (w, w)


def test_a_triangle_is_written_where_it_is_asked_for() -> None:
    matrix, out = np.arange(9.0).reshape(3, 3), np.full(6, np.nan)
    assert upper_triangle(matrix, out) is out
    assert out.tolist() == [0.0, 1.0, 2.0, 4.0, 5.0, 8.0]
