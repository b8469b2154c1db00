"""Sums by fold: each those of its rows, together those of all rows."""

from __future__ import annotations

import tracemalloc
from dataclasses import fields, replace
from typing import Any

import naive
import numpy as np
import pytest
from problems import basis_of, blocks, cut_session

from streamkernel.engine import Machine
from streamkernel.fits.ridge.ridge import plan_ridge
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import FoldEquations, FoldSums, NormalEquations, RidgeSums
from streamkernel.settings import RidgeSettings
from streamkernel.table import Folds, RowBlock, open_table
from streamkernel.table.row_keys import row_keys


def case(d: int = 2, m: int = 240) -> tuple[Any, Any, NormalEquations]:
    rng = np.random.default_rng(d)
    X, Y = rng.standard_normal((m, 3)), 5 + rng.standard_normal((m, d))
    return X, Y, NormalEquations(basis_of(X, range(0, m, 12), Gaussian(1.5)), np.full(d, 4.0))


def swept(work: Any, X: Any, Y: Any, weights: Any = None, chunk: int = 50) -> Any:
    lengths = [min(chunk, len(X) - start) for start in range(0, len(X), chunk)]
    state = work.empty()
    for block in blocks(X, Y, lengths, weights):
        state = work.fold(state, block)
    return work.finalize(state)


def assert_sums(found: RidgeSums, expected: RidgeSums) -> None:
    for field in fields(RidgeSums):
        value = np.asarray(getattr(expected, field.name))
        atol = 1e-9 * max(1.0, float(np.abs(value).max(initial=0.0)))
        np.testing.assert_allclose(getattr(found, field.name), value, rtol=1e-9, atol=atol, err_msg=field.name)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("leading", [0, 3, None])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [1, 3])
def test_each_fold_has_the_sums_of_its_rows(d: int, weighted: bool, leading: int | None, count: int) -> None:
    X, Y, equations = case(d)
    equations = replace(equations, leading=leading)
    w = np.random.default_rng(1).uniform(0.1, 3.0, len(X)) if weighted else None
    folds = Folds(count)
    found: FoldSums = swept(FoldEquations(equations, folds), X, Y, w)
    of = folds.of(row_keys(X))
    assert_sums(found.total, swept(equations, X, Y, w))
    assert len(found.folds) == count
    for fold, sums in enumerate(found.folds):
        rows = of == fold
        assert_sums(sums, swept(equations, X[rows], Y[rows], None if w is None else w[rows]))
        np.testing.assert_array_equal(sums.H, sums.H.T)


def test_weights_are_repeated_rows_in_any_order_and_cut() -> None:
    X, Y, equations = case()
    w = np.random.default_rng(2).integers(0, 4, len(X))
    order = np.random.default_rng(3).permutation(np.repeat(np.arange(len(X)), w))
    work = FoldEquations(equations, Folds(2))
    once, repeated = swept(work, X, Y, w.astype(float)), swept(work, X[order], Y[order], chunk=7)
    for one, other in zip((once.total, *once.folds), (repeated.total, *repeated.folds), strict=True):
        assert_sums(replace(one, count=other.count), other)
    np.testing.assert_allclose(once.effective, repeated.effective, rtol=1e-9)


def test_copies_and_weights_count_as_one_row() -> None:
    """Against the sums over distinct rows, which the random groups estimate to 3 %."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6_000, 2))
    equations = NormalEquations(basis_of(X, [0, 1]), np.zeros(1))
    Y, folds = np.zeros((len(X), 1)), Folds(2)
    of = folds.of(row_keys(X))
    for weights in (np.ones(len(X)), rng.uniform(0.0, 1.0, len(X)) ** 4):
        found = swept(FoldEquations(equations, folds), X, Y, weights, 1000).effective
        expected = [weights[of == v].sum() ** 2 / (weights[of == v] ** 2).sum() for v in (0, 1)]
        np.testing.assert_allclose(found, expected, rtol=0.12)
    times = np.repeat(np.arange(len(X)), 5)
    copies = swept(FoldEquations(equations, folds), X[times], Y[times], chunk=1000).effective
    np.testing.assert_allclose(copies, np.bincount(of)[:2], rtol=0.12)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    X, Y, equations = case()
    table, work = open_table(X, Y).with_keys(), FoldEquations(equations, Folds(3))
    found = [cut_session([31, 50, 8], 16, threads).sweep(work, table, "sums") for threads in (1, 3)]
    for one, other in zip((found[0].total, *found[0].folds), (found[1].total, *found[1].folds), strict=True):
        np.testing.assert_array_equal(one.H, other.H)


def test_empty_folds_have_no_rows() -> None:
    X = np.ones((40, 2))
    found = swept(FoldEquations(NormalEquations(basis_of(X, [0]), np.zeros(1)), Folds(4)), X, np.ones((40, 1)))
    counts = [sums.count for sums in found.folds]
    assert sorted(counts) in ([0, 0, 0, 0], [0, 0, 0, 40])
    assert (found.effective[np.array(counts) == 0] == 0).all()


def test_rows_without_keys_are_refused() -> None:
    X, Y, equations = case()
    with pytest.raises(ValueError, match="keys"):
        FoldEquations(equations, Folds()).map_block(RowBlock(0, X, Y))


def test_two_folds_share_the_memory_of_one() -> None:
    _, _, equations = case()
    plain = equations.state_bytes()
    one, three = (FoldEquations(equations, Folds(count)).shapes["gram"] for count in (1, 3))
    width = equations.width
    assert (one, three) == ((1, width + 1, width), (2, width + 1, width))
    assert plain > 0


def test_the_numbers_of_algorithms_20() -> None:
    """The fold of the example is a rule of row numbers: keys that put its rows into fold 0."""
    i = np.arange(40)
    X = np.stack([2 * np.sin(1.7 * i + 0.3), 2 * np.cos(2.3 * i + 0.1)], 1)
    y = (np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * np.cos(5 * i))[:, None]
    held = (7 * i + 3) % 5 == 0
    basis = basis_of(X, [3, 10, 17, 24, 31, 38], Gaussian(1.0))
    equations = NormalEquations(basis, np.zeros(1), leading=0)
    folds = Folds(1)
    candidates = np.arange(1000, dtype=np.uint64)
    inside = folds.held_out(candidates)
    keys = np.where(held, candidates[inside][0], candidates[~inside][0])
    found = FoldEquations(equations, folds).finalize(
        FoldEquations(equations, folds).map_block(RowBlock(0, X, y, None, keys))
    )
    T, v = found.total, found.folds[0]
    beta = np.linalg.solve(T.H - v.H + 0.1 * np.eye(6), T.g - v.g)
    sse = v.YY - 2 * beta.T @ v.g + beta.T @ v.H @ beta
    assert sse[0, 0] == pytest.approx(0.71283956, abs=5e-9)
    K = naive.gaussian(X, basis.points, 1.0)
    residual = y - K @ basis.coefficients(beta)
    assert (residual[held] ** 2).sum() == pytest.approx(sse[0, 0], rel=1e-10)


def test_the_plan_counts_the_squares_of_many_targets() -> None:
    """With more targets than functions they are most of the sums: of all rows, and of each fold."""
    d, m = 900, 240
    X, Y, equations = case(d, m)
    settings = RidgeSettings(n_components=len(equations.basis), alpha="cv", kernel="gaussian", metric="none")
    steps = {step.name: step for step in plan_ridge(open_table(X, Y), settings, Machine(0, 1)).steps}
    folds = settings.folds(m, len(equations.basis))
    assert folds is not None
    work, [block] = FoldEquations(equations, folds), blocks(X, Y, [m])
    work.finalize(work.fold(work.empty(), block))  # compiled loops, and what is made once, take memory, too
    tracemalloc.start()
    try:
        state = work.fold(work.empty(), block)
        tracemalloc.reset_peak()
        found = work.finalize(state)
        planned = steps["final sweep"].state_bytes + steps["final sweep"].held_bytes
        assert tracemalloc.get_traced_memory()[1] <= planned + (1 << 20)  # of panels
        del state
        # The sums have no view of a larger matrix.
        assert tracemalloc.get_traced_memory()[0] <= steps["solve"].held_bytes + (1 << 20)
    finally:
        tracemalloc.stop()
    assert len(found.folds) == folds.count
