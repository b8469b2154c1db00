"""Means of a fixed population: tails against exact probabilities, and the Frobenius residual from sampled columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom
from strategies import seeds

from streamkernel.bounds import (
    bardenet_maillard,
    column_range,
    deviation_radius,
    deviation_tail,
    sampled_residual,
    serfling,
)
from streamkernel.errors import ParameterError

serfling_tail, serfling_radius = (partial(bound, rate=serfling) for bound in (deviation_tail, deviation_radius))
bardenet_maillard_tail, bardenet_maillard_radius = (
    partial(bound, rate=bardenet_maillard) for bound in (deviation_tail, deviation_radius)
)
TAILS = [serfling_tail, bardenet_maillard_tail, deviation_tail]
RADII = [serfling_radius, bardenet_maillard_radius, deviation_radius]
WITH_RADII = list(zip(TAILS, RADII, strict=True))


def test_the_printed_bound_is_false_and_these_are_not() -> None:
    population, sample, eps = np.array([1.0, 0.0, 0.0, 0.0]), 3, 0.25
    means = [population[list(rows)].mean() for rows in combinations(range(4), sample)]
    truth = np.mean([population.mean() - mean >= eps for mean in means])
    printed = math.exp(-2 * 4 * sample * eps**2 / (4 - sample))
    assert truth == 0.25
    assert printed == pytest.approx(0.22313, abs=5e-6)
    assert printed < truth
    assert serfling_tail(eps, 4, sample, 1.0) == pytest.approx(0.472367, abs=5e-7)
    assert bardenet_maillard_tail(eps, 4, sample, 1.0) == pytest.approx(0.324652, abs=5e-7)
    assert deviation_tail(eps, 4, sample, 1.0) == bardenet_maillard_tail(eps, 4, sample, 1.0)
    assert serfling_tail(eps, 4, sample, 1.0, two_sided=True) == pytest.approx(2 * 0.472367, abs=1e-6)


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("rows", [2, 3, 7, 16, pytest.param(31, marks=pytest.mark.slow)])
def test_no_population_of_zeros_and_ones_breaks_a_tail(tail: Callable[..., float], rows: int) -> None:
    """Every number of ones, every sample size and every deviation that occurs, by the exact distribution."""
    for ones in range(1, rows):
        for sample in range(1, rows + 1):
            counts = np.arange(max(0, sample - (rows - ones)), min(ones, sample) + 1)
            exact = hypergeom(rows, ones, sample)
            for count, above in zip(counts, exact.sf(counts - 1), strict=True):
                eps = count / sample - ones / rows
                assert above <= tail(eps, rows, sample, 1.0) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("tail", TAILS)
def test_random_populations_deviate_no_more_often(tail: Callable[..., float]) -> None:
    rng = np.random.default_rng(0)
    runs = 4000
    for rows, sample in [(30, 4), (30, 20), (30, 27), (200, 120)]:
        population = rng.choice([rng.random(rows), rng.random(rows) ** 8, rng.exponential(1.0, rows)])
        width = float(np.ptp(population))
        draws = rng.permuted(np.tile(population, (runs, 1)), axis=1)[:, :sample].mean(axis=1)
        deviations = draws - population.mean()
        for eps in np.quantile(np.abs(deviations), [0.5, 0.8, 0.95, 0.99]):
            for sign in (1, -1):
                assert np.mean(sign * deviations >= eps) <= tail(eps, rows, sample, width)
            assert np.mean(np.abs(deviations) >= eps) <= tail(eps, rows, sample, width, two_sided=True)


@given(
    st.sampled_from(WITH_RADII),
    st.floats(1e-6, 0.9),
    st.integers(2, 10**7),
    st.data(),
    st.floats(1e-3, 1e3),
    st.booleans(),
)
def test_radius_inverts_the_tail(
    pair: Any, delta: float, rows: int, data: st.DataObject, width: float, two_sided: bool
) -> None:
    tail, radius = pair
    sample = data.draw(st.integers(1, rows - 1))
    eps = radius(delta, rows, sample, width, two_sided=two_sided)
    assert tail(eps, rows, sample, width, two_sided=two_sided) == pytest.approx(delta, rel=1e-6)
    # Surer, or of fewer, is wider.
    assert radius(delta / 2, rows, sample, width, two_sided=two_sided) > eps
    assert radius(delta, rows, max(1, sample // 2), width, two_sided=two_sided) >= eps


@pytest.mark.parametrize("rows", [2, 3, 10, 301])
def test_bardenet_maillard_is_the_smaller_beyond_half(rows: int) -> None:
    for sample in range(1, rows + 1):
        both = bardenet_maillard_radius(0.05, rows, sample, 1.0), serfling_radius(0.05, rows, sample, 1.0)
        assert deviation_radius(0.05, rows, sample, 1.0) == min(both)
        assert (both[0] < both[1]) == (2 * sample > rows)
        assert (both[0] == both[1]) == (2 * sample <= rows)


@pytest.mark.parametrize(("rows", "sample", "width"), [(20, 20, 1.0), (20, 5, 0.0)])
def test_what_cannot_deviate(rows: int, sample: int, width: float) -> None:
    assert deviation_radius(0.05, rows, sample, width) == 0.0
    assert deviation_tail(1e-9, rows, sample, width) == 0.0
    assert deviation_tail(0.0, rows, sample, width) == 1.0


@pytest.mark.parametrize(
    "arguments", [(0.1, 10, 11, 1.0), (0.1, 10, 0, 1.0), (0.1, 10, 3, -1.0), (0.0, 10, 3, 1.0), (1.0, 10, 3, 1.0)]
)
def test_bad_arguments(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ParameterError):
        deviation_radius(*arguments)


# ------------------------------------------------------------------------------------------------ sampled columns
def residual_of(seed: int = 0, m: int = 120, n: int = 30) -> Any:
    X = np.random.default_rng(seed).standard_normal((m, 3))
    return naive.residual(naive.gaussian(X, X, 1.0), range(n))


def largest_of(R: Any) -> float:
    return float(np.diag(R).max())


@given(seeds, st.booleans())
def test_columns_are_within_every_range(seed: int, scaled: bool) -> None:
    X = np.random.default_rng(seed).standard_normal((40, 3))
    K = naive.gaussian(X, X, 1.0)
    if scaled:
        K *= np.outer(2.0 + X[:, 0], 2.0 + X[:, 0])
    R = naive.residual(K, range(10))
    top, columns = float(np.diag(K).max()), (R**2).sum(axis=0)
    ranges = [
        column_range(40, largest_of(R), residual_trace=np.trace(R)),
        column_range(40, top, trace=np.trace(K), residual_trace=np.trace(R)),
        column_range(40, top, trace=np.trace(K)),
        column_range(40, top),
    ]
    assert columns.max() <= ranges[0]
    assert np.all(np.diff(ranges) >= 0)
    # The range that the solved quadratic relies on.
    assert columns.max() <= largest_of(R) * np.linalg.norm(R)


@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize("delta", [0.5, 0.05])
def test_interval_misses_the_truth_no_more_often_than_it_says(delta: float, two_sided: bool) -> None:
    R = residual_of()
    columns, truth = (R**2).sum(axis=0), float((R**2).sum())
    rng, missed = np.random.default_rng(1), 0
    for _ in range(300):
        found = sampled_residual(
            columns[rng.choice(120, 100, replace=False)],
            120,
            largest=largest_of(R),
            residual_trace=float(np.trace(R)),
            delta=delta,
            two_sided=two_sided,
        )
        missed += not found.lower <= truth <= found.upper
        assert not found.vacuous
        # What is certain without a sample is wider by far.
        assert found.upper < 0.5 * np.trace(R) ** 2
    assert missed <= delta * 300


def test_solved_quadratic_is_tighter_than_the_radius() -> None:
    R = residual_of()
    columns = (R**2).sum(axis=0)
    found = sampled_residual(columns[:80], 120, residual_trace=float(np.trace(R)))
    assert found.upper < found.estimate + found.radius
    assert found.lower > found.estimate - found.radius
    # Its ends are where |F^2 - estimate| is the radius for the range k_max F.
    unit = found.radius / found.width
    assert found.upper - found.estimate == pytest.approx(unit * math.sqrt(found.upper))
    low = ((math.sqrt(unit**2 + 4 * found.estimate) - unit) / 2) ** 2
    assert found.lower == pytest.approx(max(low, columns[:80].sum(), np.trace(R) ** 2 / 120))


def test_the_trace_narrows_the_range() -> None:
    R = residual_of()
    columns = (R**2).sum(axis=0)
    plain = sampled_residual(columns[:70], 120)
    traced = sampled_residual(columns[:70], 120, residual_trace=float(np.trace(R)))
    assert traced.estimate == plain.estimate == pytest.approx(120 / 70 * columns[:70].sum())
    assert plain.radius / traced.radius == pytest.approx(120 / np.trace(R))
    assert plain.radius == pytest.approx(120 * deviation_radius(0.05, 120, 70, 120.0, two_sided=True))


def test_rows_of_the_basis_may_be_left_out_of_the_population() -> None:
    R = residual_of()
    columns = (R**2).sum(axis=0)
    found = sampled_residual(columns[30:], 90, residual_trace=float(np.trace(R)))
    assert found.radius == 0.0
    assert found.lower == found.upper == pytest.approx(columns.sum())


def test_one_sided_bound_is_tighter_and_claims_nothing_below() -> None:
    R = residual_of()
    columns = (R**2).sum(axis=0)
    both, one = (
        sampled_residual(columns[30:], 120, residual_trace=float(np.trace(R)), two_sided=sides)
        for sides in (True, False)
    )
    assert one.upper < both.upper
    assert one.lower == pytest.approx(max(columns[30:].sum(), np.trace(R) ** 2 / 120))


def test_too_few_columns_say_nothing() -> None:
    R = residual_of()
    found = sampled_residual((R**2).sum(axis=0)[50:52], 120, residual_trace=float(np.trace(R)))
    assert found.vacuous
    assert found.upper == np.trace(R) ** 2
    # At least what the trace is when spread evenly.
    assert found.lower == np.trace(R) ** 2 / 120
    assert not sampled_residual([0.0] * 120, 120, residual_trace=0.0).vacuous


@given(seeds)
def test_order_of_the_sample_is_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    squares = rng.exponential(1.0, 30) * 10.0 ** rng.uniform(-12, 0, 30)
    assert sampled_residual(squares, 100) == sampled_residual(rng.permutation(squares), 100)


@pytest.mark.parametrize(
    ("squares", "options", "word"),
    [
        ([5.0], {"residual_trace": 2.0}, "range"),
        ([0.1] * 5, {"rows": 4}, "replacement"),
        ([], {}, "shape"),
        ([float("nan")], {}, "finite"),
        ([0.1], {"delta": 1.5}, "delta"),
    ],
)
def test_bad_samples(squares: list[float], options: dict[str, Any], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        sampled_residual(squares, options.pop("rows", 100), **options)
