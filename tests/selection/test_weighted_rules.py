"""Rules on rows with weights: those without chance choose as among repeated rows, others draw as often."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from rule_table import CASES, title
from weighted_rows import WeightedRows, assert_same, weighted_rows

from streamkernel.engine import Session
from streamkernel.kernels import Gaussian
from streamkernel.reductions import draw_rows, uniform_rows
from streamkernel.selection import Problem, RowCache, Selection, as_rule
from streamkernel.table import Table, open_table

pytestmark = pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")

KERNEL = Gaussian(1.2)
# Candidates and scoring rows of these rules are all rows, or the rows of largest residual.
CERTAIN: list[tuple[str, dict[str, Any]]] = [
    ("csi-lookahead", {}),
    ("incomplete-cholesky", {"block": 1}),
    ("incomplete-cholesky", {}),
]


def selected(table: Table, name: str, options: dict[str, Any], n: int = 10, seed: int = 0) -> Selection:
    session, rule = Session(), as_rule(name, **options)
    if rule.keyed:
        table = table.with_keys()
    Y = table.read(table.start, table.stop)
    assert Y.Y is not None
    centre = np.average(Y.Y, axis=0, weights=Y.row_weights)
    problem = Problem(table, KERNEL, n, seed=seed, centre=centre, scale=np.ones(1))
    return rule.select(problem, session, RowCache.of(table, session))


@pytest.mark.parametrize(("name", "options"), CERTAIN, ids=[title(*each) for each in CERTAIN])
def test_rules_without_chance_choose_the_same_rows(name: str, options: dict[str, Any]) -> None:
    rows = weighted_rows()
    one, other = (selected(table, name, options) for table in rows.both)
    assert_same(one.basis.points, other.basis.points, "points")
    assert len(one.gains) == len(other.gains)
    assert_same(one.gains, other.gains, "gains", 1e-9)
    if other.traces is not None:
        assert one.traces is not None
        assert_same(one.traces, other.traces, "traces")


@pytest.mark.parametrize(("name", "options"), CASES)
def test_no_rule_chooses_a_row_of_weight_0(name: str, options: dict[str, Any]) -> None:
    """And with as many functions as there are rows, the basis is all of them, in some order."""
    rows = weighted_rows(m=40)
    found = selected(rows.weighted, name, options, n=len(rows.numbers)).basis
    if options.get("nearest", True):
        assert set(found.rows.tolist()) <= set(rows.numbers.tolist())
        assert len(found) > 0.5 * len(rows.numbers)
    else:
        # Centres: rows of weight 0 lie at 7 and more.
        assert found.points.max() < 5.0


@pytest.mark.parametrize(("name", "options"), CASES)
def test_first_residual_traces_count_the_weights(name: str, options: dict[str, Any]) -> None:
    rows = weighted_rows(m=60)
    first = selected(rows.weighted, name, options).rounds[0]
    if first.residual_trace is not None:
        assert first.residual_trace <= rows.w.sum() * (1.0 + 1e-12)


def test_few_sweeps_over_weighted_rows_explain_as_much_as_over_repeated_ones() -> None:
    """The rule draws by chance: over some seeds the mean residual traces agree."""
    rows = weighted_rows(m=300, most=6)
    left = []
    for table in rows.both:
        block = table.read(table.start, table.stop)
        traces = []
        for seed in range(12):
            basis = selected(table, "few-sweep", {"objective": "trace"}, 20, seed).basis
            traces.append(block.row_weights @ basis.residual(block.X))
        left.append(np.mean(traces))
    assert left[0] == pytest.approx(left[1], rel=0.05)


def chances(seeds: int, draw: Any) -> np.ndarray[Any, Any]:
    """How often each of 6 rows is drawn, over some seeds."""
    found = np.zeros(6)
    for seed in range(seeds):
        found[draw(seed)] += 1
    return found / seeds


WEIGHTS = np.array([1.0, 2.0, 3.0, 0.0, 4.0, 2.0])


def test_the_first_row_is_drawn_in_proportion_to_its_weight() -> None:
    table = open_table(np.arange(6.0)[:, None], weights=WEIGHTS)
    seeds = 1000
    found = chances(seeds, lambda seed: uniform_rows(table, 1, seed, (4,)))
    expected = WEIGHTS / WEIGHTS.sum()
    assert found[3] == 0.0
    statistic = float((seeds * (found - expected)[expected > 0] ** 2 / expected[expected > 0]).sum())
    assert statistic < 23.5  # chi-square with 4 degrees of freedom exceeds it once in 10,000


def test_two_rows_are_drawn_as_the_first_two_rows_of_copies() -> None:
    table = open_table(np.arange(6.0)[:, None], weights=WEIGHTS)
    found = chances(1000, lambda seed: uniform_rows(table, 2, seed, (4,)))
    p = WEIGHTS / WEIGHTS.sum()
    second = np.array([p[i] * sum(p[j] / (1.0 - p[j]) for j in range(6) if j != i) for i in range(6)])
    np.testing.assert_allclose(found, p + second, atol=0.05)


@pytest.mark.parametrize("size", [1, 3, 5, 6])
def test_importance_weights_estimate_the_sum_over_all_rows(size: int) -> None:
    table, values = open_table(np.arange(6.0)[:, None], weights=WEIGHTS), np.array([3.0, 1.0, 2.0, 1e9, 5.0, 4.0])
    estimates = []
    # All rows with a weight are drawn: nothing is left to chance.
    for seed in range(500 if size < 5 else 20):
        drawn = draw_rows(table, size, seed, (4,))
        assert drawn.importance.sum() == pytest.approx(12.0, rel=1e-12)
        estimates.append(drawn.importance @ values[drawn.rows])
        if size >= 5:
            assert drawn.complete
            np.testing.assert_array_equal(drawn.importance, WEIGHTS[drawn.rows])
    exact = float(WEIGHTS[WEIGHTS > 0] @ values[WEIGHTS > 0])
    assert np.mean(estimates) == pytest.approx(exact, rel=0.05)


def test_a_draw_does_not_depend_on_the_chunks_of_the_weights() -> None:
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((5000, 1)), rng.uniform(0.0, 2.0, 5000)
    table, stored = open_table(X, weights=w), open_table(X, weights=da.from_array(w, chunks=700))
    whole = draw_rows(table, 300, 7, (1,))
    np.testing.assert_array_equal(draw_rows(stored, 300, 7, (1,)).rows, whole.rows)
    assert stored.weight == pytest.approx(w.sum(), rel=1e-13)
    for count in (1, 50, 300):
        fewer = draw_rows(table, count, 7, (1,))
        np.testing.assert_array_equal(fewer.rows, whole.rows[:count])
        np.testing.assert_array_equal(whole.first(count).importance, fewer.importance)


def test_k_means_of_weighted_rows_are_those_of_repeated_ones() -> None:
    rows: WeightedRows = weighted_rows()
    one, other = (selected(table, "kmeans", {"nearest": False}).basis.points for table in rows.both)
    assert len(one) == len(other)
    # The seeds are drawn from samples in another order: the sums of squares agree, not each centre.
    near = [float(rows.w @ ((rows.X[:, None] - points) ** 2).sum(axis=2).min(axis=1)) for points in (one, other)]
    assert near[0] == pytest.approx(near[1], rel=0.3)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_weights_of_one_choose_what_no_weights_choose(name: str, options: dict[str, Any]) -> None:
    rows = weighted_rows(m=60)
    plain, ones = open_table(rows.X, rows.y), open_table(rows.X, rows.y, weights=np.ones(60))
    one, other = (selected(table, name, options).basis for table in (ones, plain))
    np.testing.assert_array_equal(one.rows, other.rows)
