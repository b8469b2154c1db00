"""Look-ahead CSI as a rule: rows, targets, weights, how it ends, and what its plan promises."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import naive
import numpy as np
import pytest
from problems import Float, problem_of, select, table_of_chunks

from streamkernel.engine import Machine, MemoryLimits, TableShape, check_memory, make_plan
from streamkernel.errors import ParameterError, ResourceLimitError
from streamkernel.kernels import Gaussian, Linear
from streamkernel.selection._csi_look_ahead import LookAheadCSI
from streamkernel.table import open_table

CARD = naive.card()
Y40 = CARD.y - CARD.y.mean()


# ---------------------------------------------------------------------------------------------------------- the rule
def rows(m: int = 120, seed: int = 0) -> tuple[Float, Float]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    return X, np.stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2], axis=1) + 0.1 * rng.standard_normal((m, 2))


def test_the_rule_on_the_card() -> None:
    rule = LookAheadCSI(delta=4, kappa=0.9, centred=False)
    found, session = select(rule, problem_of(CARD.X, Y40, n=6))
    assert found.basis.rows.tolist() == [30, 21, 18, 0, 14, 31]
    np.testing.assert_allclose(found.gains, [0.522146, 0.31307, 0.0674491, 0.0224867, 0.0170229, 0.016679], rtol=6e-6)
    assert found.ended == "size"
    assert len(session.records) == 1  # one sweep gathers the rows
    for record in found.rounds:
        assert record.stop == record.start + 1
        expected = naive.residual_trace(CARD.K, found.basis.rows[: record.start].tolist())
        np.testing.assert_allclose(record.residual_trace, expected, rtol=1e-10)


@pytest.mark.parametrize("chunk", [1, 7, 120])
def test_any_chunking_is_the_same_bits(tmp_path: Path, chunk: int) -> None:
    X, Y = rows()
    rule = LookAheadCSI(delta=6)
    whole, _ = select(rule, problem_of(X, Y, n=20))
    parts, _ = select(rule, problem_of(table_of_chunks(tmp_path / "rows", X, Y, chunk), n=20))
    np.testing.assert_array_equal(whole.basis.rows, parts.basis.rows)
    np.testing.assert_array_equal(whole.basis.points, parts.basis.points)
    np.testing.assert_array_equal(whole.gains, parts.gains)


def test_targets_are_centred_and_scaled_by_the_problem() -> None:
    X, Y = rows()
    problem = problem_of(X, Y, n=10)
    moved = type(problem)(
        open_table(X, Y * [1.0, 50.0] + [3.0, -7.0]),
        problem.kernel,
        10,
        centre=np.array([3.0, -7.0]),
        scale=np.array([1.0, 50.0]),
    )
    for centred in (False, True):
        rule = LookAheadCSI(delta=6, centred=centred)
        plain, shifted = select(rule, problem)[0], select(rule, moved)[0]
        assert plain.basis.rows.tolist() == shifted.basis.rows.tolist()
        np.testing.assert_allclose(plain.gains, shifted.gains, rtol=1e-9)


def test_class_indicators() -> None:
    X, Y = rows()
    labels = np.where(Y[:, 0] > 0.5, "high", np.where(Y[:, 0] < -0.5, "low", "middle"))
    indicators = (labels[:, None] == np.unique(labels)).astype(float)
    problem = problem_of(X, n=12)
    table = open_table(X, labels, classify=True)
    classes = type(problem)(table, problem.kernel, 12, centre=indicators[:50].mean(axis=0), scale=np.ones(3))
    found, _ = select(LookAheadCSI(delta=8), classes)
    K = naive.gaussian(X, X, 1.0)
    expected, _ = naive.csi_look_ahead(K, 12, indicators, kappa=0.99, delta=8, centred=True)
    assert found.basis.rows.tolist() == expected.picks
    np.testing.assert_allclose(found.gains, expected.scores, rtol=1e-9)


@pytest.mark.parametrize("Y", [None, np.full((120, 2), 1e6 / 3)], ids=["none", "constant"])
def test_without_targets_to_tell_the_gain_is_of_the_trace(Y: Float | None) -> None:
    X, _ = rows()
    found, _ = select(LookAheadCSI(delta=120), problem_of(X, Y, n=10))
    expected, _ = naive.sgma(naive.gaussian(X, X, 1.0), [range(120)] * 10)
    assert found.basis.rows.tolist() == expected.picks
    np.testing.assert_allclose(120 * found.gains, expected.scores, rtol=1e-9)


def test_weights_are_repeated_rows() -> None:
    """With exact gains: a row of weight 3 is three rows of weight 1, and a row of weight 0 is none."""
    X, Y = rows(40)
    weights = np.random.default_rng(1).integers(0, 4, 40)
    problem = problem_of(X, Y, n=8)
    weighted = type(problem)(open_table(X, Y, weights=weights), problem.kernel, 8, centre=np.zeros(2), scale=np.ones(2))
    repeated = np.repeat(np.arange(40), weights)
    for centred in (False, True):
        rule = LookAheadCSI(delta=120, centred=centred)
        found, expected = select(rule, weighted)[0], select(rule, problem_of(X[repeated], Y[repeated], n=8))[0]
        assert found.basis.rows.tolist() == repeated[expected.basis.rows].tolist()
        np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-9)
        assert (weights[found.basis.rows] > 0).all()


def test_row_numbers_of_a_slice_stay_those_of_the_table() -> None:
    X, Y = rows()
    whole = problem_of(X, Y, n=6)
    part = type(whole)(whole.table.slice(40, 90), whole.kernel, 6, centre=np.zeros(2), scale=np.ones(2))
    found, _ = select(LookAheadCSI(delta=5), part)
    alone, _ = select(LookAheadCSI(delta=5), problem_of(X[40:90], Y[40:90], n=6))
    np.testing.assert_array_equal(found.basis.rows, alone.basis.rows + 40)
    np.testing.assert_array_equal(found.basis.points, X[found.basis.rows])


def test_single_precision_rows_are_exact_rows() -> None:
    X, Y = rows()
    single = X.astype(np.float32)
    found, _ = select(LookAheadCSI(delta=8), problem_of(single, Y, n=15))
    double, _ = select(LookAheadCSI(delta=8), problem_of(single.astype(np.float64), Y, n=15))
    assert found.basis.points.dtype == np.float32
    np.testing.assert_array_equal(found.basis.rows, double.basis.rows)
    np.testing.assert_array_equal(found.gains, double.gains)


@pytest.mark.parametrize("delta", [0, 3, 500])
def test_exhausted_rank_ends_it(delta: int) -> None:
    """Duplicate rows, a constant column, and more columns ahead than rows; ties go to the lowest row."""
    X, Y = rows(9)
    X = np.tile(np.column_stack([X, np.ones(9)]), (6, 1))
    found, _ = select(LookAheadCSI(delta=delta, gain_tolerance=0.0), problem_of(X, np.tile(Y, (6, 1)), n=40))
    assert found.ended == "rank"
    assert sorted(found.basis.rows.tolist()) == list(range(9))


def test_more_functions_than_rows_and_rows_that_are_nothing() -> None:
    X, Y = rows(12)
    found, _ = select(LookAheadCSI(gain_tolerance=0.0), problem_of(X, Y, n=30))
    assert sorted(found.basis.rows.tolist()) == list(range(12))
    assert found.ended == "rank"
    nothing, _ = select(LookAheadCSI(), problem_of(np.zeros((7, 2)), Y[:7], n=3, kernel=Linear()))
    assert len(nothing.basis) == 0
    assert nothing.ended == "rank"


def test_a_gain_too_small_ends_it_unless_the_trace_is_to_be_held() -> None:
    X, Y = rows(200)
    y = Y[:, 0]
    whole, _ = select(LookAheadCSI(gain_tolerance=0.0), problem_of(X, y, n=60))
    found, _ = select(LookAheadCSI(gain_tolerance=3e-3), problem_of(X, y, n=60))
    n = len(found.basis)
    assert found.ended == "tolerance"
    assert 1 < n < 60
    np.testing.assert_array_equal(found.basis.rows, whole.basis.rows[:n])
    assert found.gains[-1] < 3e-3
    held, _ = select(LookAheadCSI(gain_tolerance=3e-3), problem_of(X, y, n=150, tol=0.05))
    K = naive.gaussian(X, X, 1.0)
    assert held.ended == "tolerance"
    assert naive.residual_trace(K, held.basis.rows.tolist()) <= 0.05 * 200
    assert naive.residual_trace(K, held.basis.rows[:-1].tolist()) > 0.05 * 200


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delta": -1}, "delta = -1 is out of range; give a whole number >= 0"),
        ({"delta": 2.5}, "delta = 2.5"),
        ({"kappa": 1.5}, "kappa = 1.5 is out of range; give a number in [0, 1]"),
        ({"kappa": "high"}, "kappa = 'high'"),
        ({"gain_tolerance": -1e-3}, "gain_tolerance = -0.001"),
        ({"gain_tolerance": float("nan")}, "gain_tolerance = nan"),
    ],
)
def test_wrong_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        LookAheadCSI(**options)
    assert said in str(caught.value)


# ----------------------------------------------------------------------------------------------------------- the plan
@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)])
def test_the_plan_holds_what_is_held(dtype: Any) -> None:
    X, Y = rows(20_000)
    problem = problem_of(np.ascontiguousarray(np.tile(X, (1, 4)), dtype=dtype), Y, n=30, kernel=Gaussian(3.0))
    rule = LookAheadCSI(delta=20)
    gather, look = rule.steps(problem)
    assert gather.rows == look.rows == 20_000
    assert look.kernel_columns == 50
    select(rule, problem)  # compiled code, once it is loaded, is no part of the promise
    tracemalloc.start()
    select(rule, problem)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.6 * look.held_bytes < peak < look.held_bytes


def test_a_table_too_large_is_refused_before_anything_is_read() -> None:
    rule = LookAheadCSI()
    X = np.broadcast_to(np.zeros(1), (10_000_000, 20))
    problem = problem_of(np.zeros((1, 20)), n=500)

    class Large:
        n_rows, n_features, n_targets, dtype = *X.shape, 1, X.dtype
        chunk_rows, in_memory, width, scaler, weights = 10_000, False, X.shape[1], None, None
        stored_width, columns, sparse = width, ("x",) * width, False
        start, stop, features = 0, 10_000_000, SimpleNamespace(cuts=lambda first, last: range(first, last + 1, 10_000))

    def plan(n: int) -> Any:
        large = type(problem)(Large(), problem.kernel, n, centre=np.zeros(1), scale=np.ones(1))  # type: ignore[arg-type]
        return make_plan(rule.steps(large), TableShape.of(Large()), Machine(0, 2), disk_bytes=0)  # type: ignore[arg-type]

    assert plan(500).driver_bytes > 8 * 10_000_000 * (500 + 2 * 40)
    with pytest.raises(ResourceLimitError, match=r"exceeds allowed memory.*or use the rule csi, which"):
        check_memory(plan(500), MemoryLimits(total=4 << 30), plan, 500)
