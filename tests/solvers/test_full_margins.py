"""Support vector machines out of core against those of all rows in memory."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from problems import cut_session, table_of_chunks
from sklearn.svm import SVC

from streamkernel.engine import Machine, Session, ThreadExecutor
from streamkernel.errors import ParameterError, ResourceLimitError, StreamKernelWarning
from streamkernel.kernels import Gaussian
from streamkernel.reductions.margins import EpsilonInsensitive, Hinge, OneClass, Target
from streamkernel.solvers import SupportVectorSolution, plan_full_margins, solve_full_margins, solve_smo
from streamkernel.table import Folds, open_table

KERNEL = Gaussian(1.0)
RNG = np.random.default_rng(8)
X = RNG.standard_normal((900, 3))
NUMBERS = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.standard_normal(900)
SIGNS = (NUMBERS > 0.2).astype(float)
LARGE = "hinge of a large C"  # takes the most sweeps
CASES: dict[str, tuple[Any, Any]] = {
    "hinge": (Hinge(3.0), SIGNS),
    LARGE: (Hinge(1e4), SIGNS),
    "tube": (EpsilonInsensitive(2.0, 0.2), NUMBERS),
    "one class": (OneClass(1.0 / 90.0), None),
}


def solved(case: str = "hinge", session: Session | None = None, **options: Any) -> SupportVectorSolution:
    loss, y = CASES[case]
    weights = options.pop("weights", None)
    table = open_table(options.pop("rows", X), options.pop("y", y), weights=weights)
    loss = options.pop("loss", OneClass(1.0 / (0.1 * table.weight)) if case == "one class" else loss)
    # The values of one class are nu m times smaller than those of libsvm.
    tolerance = 1e-8 if case == "one class" else 1e-6
    options = {"target": None if y is None else Target(0), "first_rows": 40, "tolerance": tolerance} | options
    return solve_full_margins(table, KERNEL, loss, session or Session(ThreadExecutor(1)), **options)


def in_memory(case: str, weights: Any = None) -> Any:
    loss, y = CASES[case]
    if y is None:
        loss, y = OneClass(1.0 / (0.1 * (900 if weights is None else weights.sum()))), np.zeros(900)
    return solve_smo(KERNEL, X, y, loss, weights=weights, tolerance=1e-10)


def values(machine: SupportVectorSolution) -> Any:
    return KERNEL(X, machine.points) @ machine.coefficients + machine.offset


@pytest.mark.parametrize(
    ("case", "weighted"),
    [
        pytest.param(case, weighted, marks=[pytest.mark.slow] * (weighted and case == LARGE))
        for case in CASES
        for weighted in (False, True)
    ],
)
def test_the_machine_of_all_rows(case: str, weighted: bool) -> None:
    weights = np.arange(900) % 3 * 0.7 if weighted else None
    expected = in_memory(case, weights)
    found = solved(case, weights=weights)
    assert found.converged
    size = abs(expected.primal)
    assert expected.dual - 1e-9 * size <= found.primal
    assert found.dual <= expected.primal + 1e-9 * size
    assert found.gap <= 1e-5 * size
    np.testing.assert_allclose(values(found), KERNEL(X) @ expected.coefficients + expected.offset, atol=2e-4)
    np.testing.assert_array_equal(found.points, X[found.rows])
    # What each sweep says of the whole table: bounds, of which the lower one rises.
    best = expected.primal
    duals = [each.dual for each in found.iterations]
    assert all(each.dual <= best + 1e-9 * size and best <= each.primal + 1e-9 * size for each in found.iterations)
    assert all(after >= before - 1e-9 * size for before, after in pairwise(duals))
    primal = 0.5 * found.coefficients @ KERNEL(found.points) @ found.coefficients
    w, (loss, y) = np.ones(900) if weights is None else weights, CASES[case]
    loss = OneClass(1.0 / (0.1 * w.sum())) if y is None else loss
    primal += w @ loss.loss(np.zeros(900) if y is None else y, values(found)) + loss.constant_slope * found.offset
    assert found.primal == pytest.approx(primal, rel=1e-9)


def test_libsvm() -> None:
    found = solved(tolerance=1e-8)
    machine = SVC(C=3.0, gamma=0.5, tol=1e-9).fit(X, SIGNS)
    np.testing.assert_allclose(values(found), machine.decision_function(X), atol=1e-4)
    assert found.offset == pytest.approx(machine.intercept_[0], abs=1e-5)


@pytest.mark.parametrize("case", [pytest.param(LARGE, marks=pytest.mark.slow), "tube", "one class"])
def test_idle_rows_make_room(case: str) -> None:
    """A working set with little more room than for the support vectors."""
    expected = in_memory(case)
    room = int(1.25 * len(expected.vectors))
    found = solved(case, n_components=room, tolerance=1e-7 if case == "one class" else 1e-5)
    assert found.converged
    assert len(found.rows) <= room < 900
    np.testing.assert_allclose(values(found), KERNEL(X) @ expected.coefficients + expected.offset, atol=1e-3)


@pytest.mark.parametrize("case", ["hinge", "one class"])
def test_support_vectors_that_do_not_fit(case: str) -> None:
    words = (
        "30 support vectors fill the 30 rows .* larger n_components"
        if case == "hinge"
        else "one-class machine has at least 90 support vectors here, and n_components is 30"
    )
    with pytest.raises(ResourceLimitError, match=words):
        solved(case, n_components=30)


@pytest.mark.parametrize("case", ["hinge", "tube", "one class"])
def test_any_chunking_and_workers_give_the_same_bits(case: str) -> None:
    expected = solved(case)
    for cuts, block, threads, backwards in (((900,), 900, 1, False), ((7, 101, 13), 5, 2, False), ((50,), 64, 1, True)):
        found = solved(case, cut_session(cuts, block, threads, backwards=backwards))
        for name in ("rows", "points", "coefficients"):
            assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()
        assert (found.offset, found.dual, found.steps) == (expected.offset, expected.dual, expected.steps)
        assert found.primal == pytest.approx(expected.primal, rel=1e-12)


def test_a_stored_table(tmp_path: Any) -> None:
    stored = table_of_chunks(tmp_path / "rows", X, SIGNS, 130)
    found = solve_full_margins(stored, KERNEL, Hinge(3.0), Session(), target=Target(0), first_rows=40, tolerance=1e-6)
    assert found.coefficients.tobytes() == solved().coefficients.tobytes()


def test_any_order_of_the_rows() -> None:
    order = RNG.permutation(900)
    first, other = solved("hinge"), solved("hinge", rows=X[order], y=SIGNS[order])
    np.testing.assert_allclose(values(first), values(other), atol=1e-4)
    np.testing.assert_array_equal(np.sort(order[other.rows]), first.rows)


def test_integer_weights_are_repeated_rows() -> None:
    w = np.arange(900) % 3
    some = np.repeat(np.arange(900), w)
    weighted, repeated = solved(weights=w.astype(float)), solved(rows=X[some], y=SIGNS[some])
    np.testing.assert_allclose(values(weighted), values(repeated), atol=1e-4)
    assert weighted.primal == pytest.approx(repeated.primal, rel=1e-5)


@pytest.mark.parametrize("first", [2, 40, 5000])
def test_tables_sorted_by_class(first: int) -> None:
    """The first working set may have one class only."""
    order = np.argsort(SIGNS, kind="stable")[400:]
    y = SIGNS[order] * 1.0
    found = solved(rows=X[order], y=y, first_rows=first)
    assert found.converged
    alone = solve_smo(KERNEL, X[order], y, Hinge(3.0), tolerance=1e-8)
    assert found.primal == pytest.approx(alone.primal, rel=1e-5)


@pytest.mark.parametrize(
    ("rows", "y"),
    [
        (np.ones((60, 3)), SIGNS[:60]),
        (np.zeros((60, 3)), SIGNS[:60]),
        (X[[0, 0]], np.array([0.0, 1.0])),
        (X[:60], np.ones(60)),
        (X[:60], (X[:60, 0] > 0) * 1.0),
        (np.vstack([X[:60], X[:1]]), np.append(SIGNS[:60], 1.0 - SIGNS[0])),
    ],
    ids=["equal rows", "rows of zeros", "one row of both classes", "one class", "separable", "a row of both classes"],
)
@pytest.mark.parametrize("C", [1e-9, 1.0, 1e6])
def test_degenerate_rows(rows: Any, y: Any, C: float) -> None:
    table = open_table(rows, y)
    tolerance = 1e-4 if C > 1e3 else 1e-6
    found = solve_full_margins(table, KERNEL, Hinge(C), Session(), target=Target(0), first_rows=10, tolerance=tolerance)
    assert found.converged
    assert -1e-9 * max(found.primal, C) <= found.gap <= tolerance * C * len(y)


def test_few_sweeps_and_a_bounded_memory() -> None:
    """Memory does not grow with the rows, and the working set doubles: few sweeps find all support vectors."""
    peaks = []
    for m in (10_000, 30_000):
        rows = np.random.default_rng(1).standard_normal((m, 4))
        y = (np.sin(2 * rows[:, 0]) + rows[:, 1] > 1.0).astype(float)
        table, loss = open_table(rows, y), Hinge(100.0)
        plan = plan_full_margins(table, KERNEL, loss, Machine(0, 1, driver_base=0), n_components=2000)
        tracemalloc.start()
        found = solve_full_margins(table, KERNEL, loss, Session(ThreadExecutor(1)), target=Target(0), n_components=2000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.converged
        assert len(found.iterations) <= 12
        assert peaks[-1] <= plan.memory_bytes <= 3 * peaks[-1]
    assert peaks[1] <= 1.3 * peaks[0] + 2e6


@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.slow] * (case == LARGE)) for case in CASES])
def test_a_gap_to_reach(case: str) -> None:
    expected = in_memory(case)
    for gap in (1e-2, 1e-4, 1e-7):
        found = solved(case, gap_tol=gap)
        assert found.converged
        assert found.relative_gap <= gap
        assert found.dual - 1e-9 * abs(expected.primal) <= expected.primal <= found.primal + 1e-9 * abs(expected.primal)


def test_no_constant() -> None:
    found = solved("hinge", intercept=False)
    expected = solve_smo(KERNEL, X, SIGNS, Hinge(3.0), intercept=False, tolerance=1e-8)
    assert found.offset == 0.0
    assert found.primal == pytest.approx(expected.primal, rel=1e-7)


@pytest.mark.parametrize("C", [0.1, 3.0, 50.0])
def test_another_machine_to_start_from(C: float) -> None:
    """The same solution, and no more than a look from itself; the rows of a fold may be left out before."""
    table, folds = open_table(X, SIGNS).with_keys(), Folds(1, 8, 0)
    keys = table.read(0, 900).keys
    assert keys is not None
    kept = ~folds.held_out(keys)
    options: dict[str, Any] = {"target": Target(0), "first_rows": 40, "gap_tol": 1e-9}
    part = solve_full_margins(table, KERNEL, Hinge(1.0), Session(ThreadExecutor(1)), folds=folds, **options)
    alone = solve_smo(KERNEL, X[kept], SIGNS[kept], Hinge(1.0), tolerance=1e-10)
    assert kept[part.rows].all()
    assert part.primal == pytest.approx(alone.primal, rel=1e-7)
    assert part.count == kept.sum()
    whole = solve_smo(KERNEL, X, SIGNS, Hinge(C), tolerance=1e-10)
    warm = solve_full_margins(table, KERNEL, Hinge(C), Session(ThreadExecutor(1)), start=part, **options)
    again = solve_full_margins(table, KERNEL, Hinge(C), Session(ThreadExecutor(1)), start=warm, **options)
    assert warm.primal == pytest.approx(whole.primal, rel=1e-7)
    assert len(again.iterations) == 1
    assert again.primal == pytest.approx(warm.primal, rel=1e-9)
    assert (warm.count, warm.trace) == (900, pytest.approx(900.0))


def test_all_drawn_rows_are_held_out() -> None:
    """Copies of a row share a fold: the first working set may be empty."""
    rows = np.vstack([X[:100], np.tile(X[0], (800, 1))])
    y = (rows[:, 0] > 0) * 1.0
    table = open_table(rows, y).with_keys()
    keys = table.read(0, 900).keys
    assert keys is not None
    folds = next(folds for seed in range(99) if (folds := Folds(1, 8, seed)).held_out(keys)[0])
    kept = ~folds.held_out(keys)
    options: dict[str, Any] = {"target": Target(0), "first_rows": 2, "gap_tol": 1e-9}
    found = solve_full_margins(table, KERNEL, Hinge(1.0), Session(ThreadExecutor(1)), folds=folds, **options)
    assert found.primal == pytest.approx(
        solve_smo(KERNEL, rows[kept], y[kept], Hinge(1.0), tolerance=1e-9).primal, rel=1e-7
    )


def test_too_few_sweeps_are_told() -> None:
    with pytest.warns(StreamKernelWarning, match="1 sweeps ended with rows that violate the margin"):
        found = solved(most_sweeps=1)
    assert not found.converged
    assert found.gap > 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tolerance": -1.0}, "tolerance = -1.0 is out of range"),
        ({"n_components": 1}, "n_components = 1 is out of range"),
        ({"gap_tol": 0.0}, "gap_tol = 0.0 is out of range"),
        ({"loss": OneClass(1e-9)}, "no dual variables have the sum 1"),
        ({"most_sweeps": 0}, "most_sweeps = 0 is out of range"),
        ({"first_rows": 1}, "first_rows = 1 is out of range"),
    ],
)
def test_bad_input(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        solved(**change)
