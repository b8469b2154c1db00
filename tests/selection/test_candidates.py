"""How many candidates: the printed numbers, and the exact rule in rationals."""

from __future__ import annotations

import math

import naive
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.errors import ParameterError
from streamkernel.selection.candidates import candidates_needed

decimals = st.integers(1, 99).map(lambda hundredths: hundredths / 100)


@pytest.mark.parametrize(("eps", "quantile", "needed"), [(0.05, 0.95, 59), (0.01, 0.98, 228), (0.001, 0.1, 3)])
def test_independent_draws(eps: float, quantile: float, needed: int) -> None:
    assert candidates_needed(eps, quantile) == needed


@pytest.mark.parametrize(("rows", "needed"), [(40, 31), (100, 45), (1000, 57), (10_000, 59), (10**12, 59), (10, 10)])
def test_draws_without_replacement(rows: int, needed: int) -> None:
    assert candidates_needed(0.05, 0.95, rows) == needed


def test_the_decimal_that_was_written_counts() -> None:
    # 1 - 0.9 is less than a tenth in binary: one row of ten is good enough all the same.
    assert candidates_needed(0.5, 0.9, 10) == 5


@given(decimals, decimals, st.integers(1, 250))
def test_exact_rule_is_that_of_rationals(eps: float, quantile: float, rows: int) -> None:
    assert candidates_needed(eps, quantile, rows) == naive.candidates_per_pick(eps, quantile, rows)


def guaranteed_quantile(eps: float, candidates: int) -> float:
    """The quantile that the best of some independent candidates reaches with probability 1 - eps."""
    return float(eps ** (1.0 / candidates))


@given(decimals, decimals)
def test_guaranteed_quantile_is_the_inverse(eps: float, quantile: float) -> None:
    needed = candidates_needed(eps, quantile)
    assert guaranteed_quantile(eps, needed) >= quantile * (1 - 1e-12)
    assert needed == 1 or guaranteed_quantile(eps, needed - 1) < quantile


def test_the_rank_is_guaranteed_and_not_the_value() -> None:
    """ALGORITHMS 1.6: of 50,000 exponential scores the guaranteed quantile is a quarter of the largest."""
    value = -math.log1p(-guaranteed_quantile(0.05, 59))
    assert value == pytest.approx(3.00563, rel=2e-6)
    largest = sum(1 / k for k in range(1, 50_001))  # the mean of the maximum
    assert value / largest == pytest.approx(0.264, abs=5e-4)


@pytest.mark.parametrize(
    "arguments", [(0.0, 0.95), (1.0, 0.95), (0.05, 1.0), (0.05, float("nan")), (0.05, 0.95, 0), (0.05, 0.95, 2.5)]
)
def test_bad_arguments(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError, match=r"give an? "):
        candidates_needed(*arguments)  # type: ignore[arg-type]
