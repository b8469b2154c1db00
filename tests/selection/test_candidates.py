"""How many candidates: the numbers of the papers, and of counting."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.errors import ParameterError
from streamkernel.selection.candidates import candidates_needed


def test_numbers_of_the_papers() -> None:
    assert candidates_needed(0.05, 0.95) == 59
    assert candidates_needed(0.01, 0.98) == 228


@pytest.mark.parametrize(("rows", "needed"), [(40, 31), (100, 45), (1000, 57), (10_000, 59), (10**9, 59)])
def test_without_replacement(rows: int, needed: int) -> None:
    assert candidates_needed(0.05, 0.95, rows) == needed


@given(st.integers(1, 300), st.floats(0.001, 0.5), st.floats(0.5, 0.999))
def test_least_that_counting_allows(rows: int, eps: float, quantile: float) -> None:
    s = candidates_needed(eps, quantile, rows)
    good = int((1.0 - quantile) * rows + 1e-9)
    if good < 1:
        assert s == rows
        return
    assert comb(rows - good, s) / comb(rows, s) <= eps * (1 + 1e-9)
    assert comb(rows - good, s - 1) / comb(rows, s - 1) > eps * (1 - 1e-9)
    assert s <= max(candidates_needed(eps, quantile), rows)


@pytest.mark.parametrize(
    ("eps", "quantile"), [(0.0, 0.5), (1.0, 0.5), (0.5, 1.0), (0.5, -0.1), (True, 0.5), ("a", 0.5)]
)
def test_probabilities_only(eps: object, quantile: float) -> None:
    with pytest.raises(ParameterError, match="must be a number between 0 and 1"):
        candidates_needed(eps, quantile)  # type: ignore[arg-type]
