"""Support vector machines out of core against those of all rows in memory."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from problems import cut_session, table_of_chunks
from sklearn.svm import SVC

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ParameterError, ResourceLimitError, StreamKernelWarning
from streamkernel.kernels import Gaussian
from streamkernel.reductions.margins import Below, EpsilonInsensitive, Hinge
from streamkernel.solvers import SupportVectorSolution, full_margins, solve_full_margins, solve_smo
from streamkernel.table import open_table

KERNEL = Gaussian(1.0)
RNG = np.random.default_rng(8)
X = RNG.standard_normal((900, 3))
NUMBERS = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.standard_normal(900)
SIGNS = (NUMBERS > 0.2).astype(float)
CASES: dict[str, tuple[Any, Any, Any]] = {
    "hinge": (Hinge(3.0), SIGNS, None),
    "hinge of a large C": (Hinge(1e4), SIGNS, None),
    "tube": (EpsilonInsensitive(2.0, 0.2), NUMBERS, None),
    "one class": (Below(1.0), np.zeros(900), 0.1),
}


def solved(case: str = "hinge", session: Session | None = None, **options: Any) -> SupportVectorSolution:
    loss, y, nu = CASES[case]
    table = open_table(options.pop("rows", X), options.pop("y", y), weights=options.pop("weights", None))
    options = {"column": None if nu else 0, "nu": nu, "first_rows": 40, "tolerance": 1e-6} | options
    return solve_full_margins(table, KERNEL, loss, session or Session(ThreadExecutor(1)), **options)


def memory_for(rows: int, case: str = "hinge") -> int:
    """A limit that holds so many rows of a working set."""
    table, loss = open_table(X, SIGNS), CASES[case][0]
    return next(limit for limit in range(0, 10**8, 50) if full_margins.working_rows(table, KERNEL, loss, limit) == rows)


def in_memory(case: str, weights: Any = None) -> Any:
    loss, y, nu = CASES[case]
    total = (nu or 0.0) * (900 if weights is None else weights.sum())
    return solve_smo(KERNEL, X, y, loss, weights=weights, total=total, tolerance=1e-8)


def values(machine: SupportVectorSolution) -> Any:
    return KERNEL(X, machine.points) @ machine.coefficients + machine.offset


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", CASES)
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
    w, (loss, y, nu) = np.ones(900) if weights is None else weights, CASES[case]
    primal += w @ loss.loss(y, values(found)) + (nu or 0.0) * w.sum() * found.offset
    assert found.primal == pytest.approx(primal, rel=1e-9)


def test_libsvm() -> None:
    found = solved(tolerance=1e-8)
    machine = SVC(C=3.0, gamma=0.5, tol=1e-9).fit(X, SIGNS)
    np.testing.assert_allclose(values(found), machine.decision_function(X), atol=1e-4)
    assert found.offset == pytest.approx(machine.intercept_[0], abs=1e-5)


@pytest.mark.parametrize("case", ["hinge of a large C", "tube", "one class"])
def test_idle_rows_make_room(case: str) -> None:
    """A working set with little more room than for the support vectors."""
    expected = in_memory(case)
    room = int(1.25 * len(expected.vectors))
    limit = memory_for(room, case)
    found = solved(case, memory_limit=limit, tolerance=1e-5)
    assert found.converged
    assert len(found.rows) <= room < 900
    np.testing.assert_allclose(values(found), KERNEL(X) @ expected.coefficients + expected.offset, atol=1e-3)


@pytest.mark.parametrize("case", ["hinge", "one class"])
def test_support_vectors_that_do_not_fit(case: str) -> None:
    words = (
        "support vectors .* memory_limit" if case == "hinge" else "one-class machine has at least 90 support vectors"
    )
    with pytest.raises(ResourceLimitError, match=words):
        solved(case, memory_limit=memory_for(30, case))
    with pytest.raises(ResourceLimitError, match="has no room for two rows of 3 features; give more"):
        solved(case, memory_limit=500)


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
    found = solve_full_margins(stored, KERNEL, Hinge(3.0), Session(), first_rows=40, tolerance=1e-6)
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
    found = solve_full_margins(table, KERNEL, Hinge(C), Session(), first_rows=10, tolerance=tolerance)
    assert found.converged
    assert -1e-9 * max(found.primal, C) <= found.gap <= tolerance * C * len(y)


def test_few_sweeps_and_a_bounded_memory() -> None:
    """Memory does not grow with the rows, and the working set doubles: few sweeps find all support vectors."""
    peaks = []
    for m in (10_000, 30_000):
        rows = np.random.default_rng(1).standard_normal((m, 4))
        y = (np.sin(2 * rows[:, 0]) + rows[:, 1] > 1.0).astype(float)
        table, limit = open_table(rows, y), 24 << 20
        tracemalloc.start()
        found = solve_full_margins(table, KERNEL, Hinge(100.0), Session(ThreadExecutor(1)), memory_limit=limit)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.converged
        assert len(found.iterations) <= 12
    assert peaks[1] <= limit + 8e6  # and the blocks of a sweep
    assert peaks[1] <= 1.3 * peaks[0] + 2e6


def test_too_few_sweeps_are_told() -> None:
    with pytest.warns(StreamKernelWarning, match="1 sweeps ended with rows that violate the margin"):
        found = solved(most_sweeps=1)
    assert not found.converged
    assert found.gap > 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tolerance": -1.0}, "tolerance = -1.0 is out of range"),
        ({"memory_limit": 0}, "memory_limit = 0 is out of range"),
        ({"nu": 1.5}, "nu = 1.5 is out of range; give a share"),
        ({"most_sweeps": 0}, "most_sweeps = 0 is out of range"),
        ({"first_rows": 1}, "first_rows = 1 is out of range"),
    ],
)
def test_bad_input(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        solved(**change)
