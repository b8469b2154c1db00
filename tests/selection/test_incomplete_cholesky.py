"""Incomplete Cholesky in few looks: the very picks of one pivot at a time, however the rows are cut."""

from __future__ import annotations

from functools import cache
from typing import Any

import dask.array as da
import data_sets
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import basis_of, blocks, problem_of, select
from strategies import chunkings, few_examples, rows

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian, Linear, Polynomial
from streamkernel.reductions.pools.largest_residuals import LargestResiduals, ResidualRows
from streamkernel.selection import Problem, Selection
from streamkernel.selection._incomplete_cholesky import IncompleteCholesky, largest_pivots
from streamkernel.table import open_table

CARD = naive.card()
PICKS = [0, 34, 10, 3, 9, 8]
TRACES = [34.8364, 29.0728, 24.0337, 19.8675, 16.512, 12.3778]


def planned(rule: IncompleteCholesky, problem: Problem) -> int:
    return sum(step.times for step in rule.steps(problem) if step.where == "sweep")


def run(X: Any, n: int, *, threads: int = 1, kernel: Any = None, tol: float = 0.0, **options: Any) -> Selection:
    """What the rule picks; the plan knew of every sweep."""
    rule, problem = IncompleteCholesky(**options), problem_of(X, n=n, kernel=kernel, tol=tol)
    selection, session = select(rule, problem, Session(ThreadExecutor(threads)))
    assert len(session.records) <= planned(rule, problem)
    return selection


# ------------------------------------------------------------------------------------------------------ the card's rows
@pytest.mark.parametrize(
    ("chunk", "block"),
    [
        # A row in each chunk takes the longest, whatever the block.
        pytest.param(chunk, block, marks=[pytest.mark.slow] if chunk == 1 and block != 3 else [])
        for chunk in (1, 7, 40)
        for block in (None, 1, 2, 3, 7, 40, 1000)
    ],
)
def test_picks_and_pivots_of_the_card(chunk: int, block: int | None) -> None:
    oracle, _ = naive.incomplete_cholesky(CARD.K, 6)
    found = run(da.from_array(CARD.X, chunks=(chunk, 2)), 6, block=block)
    assert found.basis.rows.tolist() == oracle.picks == PICKS
    np.testing.assert_allclose(found.gains, oracle.scores, rtol=1e-10)
    assert found.ended == "size"


def test_the_traces_of_the_card_come_from_one_look() -> None:
    look = look_of(CARD.X, PICKS, 3, [40])
    np.testing.assert_allclose(look.path, TRACES, rtol=6e-6)
    np.testing.assert_allclose(look.path, naive.incomplete_cholesky(CARD.K, 6)[0].traces, rtol=1e-10)
    assert look.trace == 40


# ------------------------------------------------------------------------------------ equal to one pivot at a time
def sure_picks(K: naive.Array, count: int) -> list[int]:
    """The oracle's picks, as long as its pivots are more than rounding."""
    with np.errstate(divide="ignore", invalid="ignore"):
        path, _ = naive.incomplete_cholesky(K, count)
    sure = np.append(np.array(path.scores) > 1e-9, False)
    return path.picks[: int(np.argmin(sure))]


@few_examples(0.4)
@given(X=rows(max_rows=50, max_features=4), data=st.data())
def test_any_block_any_chunks_any_threads(X: Any, data: st.DataObject) -> None:
    block = data.draw(st.integers(1, 60), "block")
    chunk = data.draw(st.integers(1, len(X)), "chunk")
    threads = data.draw(st.sampled_from([1, 2]), "threads")
    n = min(12, len(X))
    found = run(da.from_array(X, chunks=(chunk, X.shape[1])), n, block=block, threads=threads)
    expected = sure_picks(naive.gaussian(X, X, 1.0), n)
    assert found.basis.rows[: len(expected)].tolist() == expected
    assert (found.gains[len(expected) :] <= 2e-9).all()


def grid(side: int) -> Any:
    """Neighbours by the dozen at equal distances: ties wherever one looks."""
    return np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2).astype(np.float64)


SETS: dict[str, tuple[Any, float]] = {
    "isotropic": (np.random.default_rng(0).standard_normal((1500, 20)), 6.0),
    "three features": (np.random.default_rng(0).standard_normal((1500, 3)), 1.0),
    "rows far apart": (np.random.default_rng(0).standard_normal((1500, 3)), 0.1),
    "clusters": (data_sets.gaussian_mixture(1500, 4).X, 1.0),
    "rare clusters": (data_sets.rare_clusters(1500).X, 1.5),
    "ten of each": (np.repeat(np.random.default_rng(0).standard_normal((150, 15)), 10, axis=0), 3.0),
    "grid": (grid(38), 3.0),
    "single precision": (np.random.default_rng(0).standard_normal((1500, 3)).astype(np.float32) + 100, 1.0),
}
FEW_LOOKS = ("rare clusters", "single precision", "three features")


@cache
def oracle_of(name: str) -> Any:
    X, lengthscale = SETS[name]
    return naive.incomplete_cholesky(naive.gaussian(X, X, lengthscale), 80)[0]


@pytest.mark.parametrize(
    ("block", "name"),
    [
        # Small blocks take the longest, and are of all sets alike: of most sets in the slow tests only.
        pytest.param(block, name, marks=[pytest.mark.slow] if block != 1500 and name not in FEW_LOOKS else [])
        for block in (25, 200, 1500)
        for name in SETS
    ],
)
def test_many_rows(block: int, name: str) -> None:
    X, lengthscale = SETS[name]
    oracle = oracle_of(name)
    found = run(X, 80, kernel=Gaussian(lengthscale), block=block, threads=2)
    if name == "ten of each":  # of equal rows any: BLAS may give them other last digits at another place of a block
        np.testing.assert_array_equal(found.basis.points, X[oracle.picks])
    else:
        assert found.basis.rows.tolist() == oracle.picks
    np.testing.assert_allclose(found.gains, oracle.scores, atol=1e-12)


@pytest.mark.parametrize("kernel", [Polynomial(degree=3), Polynomial(degree=2) + Gaussian(0.5)])
def test_a_diagonal_that_is_not_constant(kernel: Any) -> None:
    X = np.random.default_rng(1).standard_normal((300, 3))
    oracle, _ = naive.incomplete_cholesky(kernel(X), 15)
    found = run(X, 15, kernel=kernel, block=20)
    assert found.basis.rows.tolist() == oracle.picks
    assert found.rounds[0].residual_trace == pytest.approx(np.trace(kernel(X)))


def test_row_numbers_of_a_slice_stay_those_of_the_table() -> None:
    X = np.random.default_rng(0).standard_normal((100, 2))
    oracle, _ = naive.incomplete_cholesky(naive.gaussian(X[40:80], X[40:80]), 5)
    problem = Problem(open_table(X).slice(40, 80), Gaussian(1.0), 5)
    found, _ = select(IncompleteCholesky(block=6), problem)
    assert found.basis.rows.tolist() == [40 + pick for pick in oracle.picks]
    np.testing.assert_array_equal(found.basis.points, X[found.basis.rows])


# ------------------------------------------------------------------------------------------------------------- looks
def test_looks_are_few_and_the_certificates_exact() -> None:
    X = np.random.default_rng(0).standard_normal((4000, 3))
    selection, session = select(IncompleteCholesky(), problem_of(X, n=60))
    assert len(session.records) <= 9  # the first pivot's gather, and ALGORITHMS 14: 4 to 9 looks for 60 functions
    K = naive.gaussian(X[:1500], X[:1500])
    selection, _ = select(IncompleteCholesky(), problem_of(X[:1500], n=60))
    for record in selection.rounds:
        expected = naive.residual_trace(K, selection.basis.rows[: record.start].tolist())
        assert record.residual_trace == pytest.approx(expected, rel=1e-9)
    assert [record.stop for record in selection.rounds][-1] == 60


def test_all_rows_in_a_block_are_one_look() -> None:
    X = np.random.default_rng(0).standard_normal((200, 3))
    _, session = select(IncompleteCholesky(block=200), problem_of(X, n=60))
    assert [record.name for record in session.records] == [
        "gather sampled rows",
        "look for the largest residuals of 1 functions",
    ]


@pytest.mark.parametrize("share", [0.9, 0.5])
def test_weak_greedy_pivots_are_a_share_of_the_largest(share: float) -> None:
    X = np.random.default_rng(0).standard_normal((400, 3))
    K = naive.gaussian(X, X)
    weak, exact = (select(IncompleteCholesky(block=20, share=s), problem_of(X, n=40)) for s in (share, 1.0))
    assert len(weak[1].records) < len(exact[1].records)
    rows = weak[0].basis.rows.tolist()
    for t, row in enumerate(rows):
        left = naive.residual_diagonal(K, rows[:t])
        assert left[row] >= share * left.max() * (1 - 1e-9)
    assert rows != exact[0].basis.rows.tolist()


def test_without_a_share_a_block_is_taken_whole() -> None:
    X = np.random.default_rng(0).standard_normal((500, 5))
    found, session = select(IncompleteCholesky(block=20, share=0.0), problem_of(X, n=41))
    assert [record.stop - record.start for record in found.rounds] == [1, 20, 20]
    assert len(session.records) == 3


# --------------------------------------------------------------------------------------------------------- tolerance
@pytest.mark.parametrize("tol", [0.5, 0.2, 0.05])
@pytest.mark.parametrize("block", [5, 60, 400])
@pytest.mark.parametrize("n", [45, 200])
def test_a_tolerance_gives_the_shortest_basis_that_holds_it(tol: float, block: int, n: int) -> None:
    X = np.random.default_rng(0).standard_normal((400, 2))
    oracle, _ = naive.incomplete_cholesky(naive.gaussian(X, X), n)
    shortest = int(np.argmax(np.array(oracle.traces) <= tol * 400)) + 1
    assert oracle.traces[shortest - 1] <= tol * 400  # n is enough
    found = run(X, n, tol=tol, block=block)
    assert found.ended == "tolerance"
    assert found.basis.rows.tolist() == oracle.picks[:shortest]
    assert len(found.gains) == found.rounds[-1].stop == shortest
    assert all(record.start < record.stop for record in found.rounds)


def test_a_tolerance_that_n_cannot_hold() -> None:
    X = np.random.default_rng(0).standard_normal((400, 2))
    found = run(X, 5, tol=0.01)
    assert (len(found.basis), found.ended) == (5, "size")


# --------------------------------------------------------------------------------------------------------- poor rows
@pytest.mark.parametrize("tol", [0.0, 1e-6])
@pytest.mark.parametrize("block", [3, 20, 1000])
def test_duplicate_rows_end_with_the_rank(block: int, tol: float) -> None:
    X = np.tile(np.random.default_rng(0).standard_normal((9, 2)), (30, 1))
    found = run(X, 40, block=block, tol=tol)
    assert found.ended == ("tolerance" if tol else "rank")
    assert sorted(found.basis.rows % 9) == list(range(9))  # one of each: their order is that of BLAS's last digits


@pytest.mark.parametrize("block", [2, 50, 300])
def test_a_linear_kernel_has_the_rank_of_the_features(block: int) -> None:
    X = np.random.default_rng(0).standard_normal((300, 4))
    found = run(X, 20, kernel=Linear(), block=block)
    assert (len(found.basis), found.ended) == (4, "rank")
    assert found.basis.residual(X).max() < 1e-9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_columns_and_rows_all_alike(dtype: Any) -> None:
    found = run(np.ones((30, 3), dtype), 5)
    assert (found.basis.rows.tolist(), found.ended) == ([0], "rank")
    X = np.random.default_rng(0).standard_normal((60, 3)).astype(dtype)
    X[:, 1] = 1e3
    oracle, _ = naive.incomplete_cholesky(naive.gaussian(X, X), 10)
    assert run(X, 10, block=8).basis.rows.tolist() == oracle.picks


def test_every_row_can_become_a_function() -> None:
    X = np.random.default_rng(2).standard_normal((9, 3))
    assert sorted(run(da.from_array(X, chunks=(4, 3)), 9, block=100).basis.rows.tolist()) == list(range(9))
    assert run(X[:1], 1).basis.rows.tolist() == [0]


@pytest.mark.parametrize("options", [{"block": 0}, {"block": 2.5}, {"share": 1.5}, {"share": -0.1}])
def test_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(options))):
        IncompleteCholesky(**options)


# ----------------------------------------------------------------------------------------------------- the reduction
def look_of(X: Any, chosen: list[int], count: int, chunks: Any) -> ResidualRows:
    reduction = LargestResiduals(basis_of(X, chosen), count)
    states = [reduction.map_block(block) for block in blocks(X, None, chunks)]
    state = states[0]
    for other in states[1:]:
        state = reduction.combine(state, other)
    return reduction.finalize(state)


@given(X=rows(min_rows=3, dtype=np.float64), count=st.integers(0, 70), data=st.data())
def test_a_look_brings_the_largest(X: Any, count: int, data: st.DataObject) -> None:
    found = look_of(X, [1], count, data.draw(chunkings(len(X))))
    d = naive.residual_diagonal(naive.gaussian(X, X), [1])
    alive = [i for i in np.argsort(-d, kind="stable") if d[i] > 1e-12]
    np.testing.assert_allclose(found.residual_trace, d.sum(), atol=1e-12 * len(X))
    np.testing.assert_allclose(found.residuals, d[alive[:count]], rtol=1e-6, atol=1e-11)
    np.testing.assert_array_equal(found.X, X[found.rows])
    assert len(found) == min(count, len(alive))
    more = len(alive) > count > 0
    assert (found.next_row >= 0) == more
    if more:
        assert found.next_residual == pytest.approx(d[alive[count]], rel=1e-6, abs=1e-11)
        assert found.next_row not in found.rows


def test_ties_with_rows_left_out_go_to_the_lowest_number() -> None:
    """Four rows so far apart that every residual stays 1: in a block of two, only those before the third are sure."""
    X = np.array([[0.0], [50.0], [100.0], [150.0]])
    look = look_of(X, [], 2, [4])
    assert (look.rows.tolist(), look.next_row, look.next_residual) == ([0, 1], 2, 1.0)
    assert largest_pivots(basis_of(X, []), look, 4, 1.0)[0].tolist() == [0, 1]
    tied = ResidualRows(4.0, 4.0, np.zeros(0), np.array([0, 3]), X[[0, 3]], np.ones(2), 1.0, 1)
    assert largest_pivots(basis_of(X, []), tied, 4, 1.0)[0].tolist() == [0]  # row 1 comes before row 3
