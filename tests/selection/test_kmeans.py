"""k-means landmarks: Lloyd's steps as the definition has them, streamed; the same rows however they are cut."""

from __future__ import annotations

from typing import Any

import dask.array as da
import data_sets
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import blocks, problem_of, select
from strategies import chunkings, few_examples, rows

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian, Kernel, Laplacian, Linear, Polynomial
from streamkernel.reductions import stream_generator
from streamkernel.reductions.clusters import Clusters, LloydStep
from streamkernel.selection import Problem, Selection, as_rule
from streamkernel.selection.kmeans import KMeans, plus_plus
from streamkernel.table import open_table


def run(X: Any, n: int, *, threads: int = 1, kernel: Any = None, seed: int = 0, **options: Any) -> Selection:
    """What the rule picks; the plan knew of every sweep."""
    rule, problem = KMeans(**options), problem_of(X, n=n, kernel=kernel, seed=seed)
    selection, session = select(rule, problem, Session(ThreadExecutor(threads)))
    assert len(session.records) <= sum(step.times for step in rule.steps(problem) if step.where == "sweep")
    return selection


def lloyd(X: Any, centres: Any, chunks: Any, weights: Any = None) -> LloydStep:
    weights = np.ones(X.shape[1]) if weights is None else weights
    reduction = Clusters(np.asarray(centres, np.float64), weights, X.dtype)
    states = [reduction.map_block(block) for block in blocks(X, None, chunks)]
    state = states[0]
    for other in states[1:]:
        state = reduction.combine(state, other)
    return reduction.finalize(state)


# -------------------------------------------------------------------------------------------------------- one step
@given(X=rows(min_rows=2, dtype=np.float64), data=st.data())
def test_a_step_is_that_of_the_definition(X: Any, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, min(len(X), 8)))
    centres = X[np.random.default_rng(len(X)).permutation(len(X))[:n]] + 1e-3
    found = lloyd(X, centres, data.draw(chunkings(len(X))))
    expected, _ = naive.kmeans(X, centres, 1)
    _, labels = naive.kmeans(X, centres, 0)
    size = np.abs(X).max()
    np.testing.assert_allclose(found.centres, expected, rtol=1e-9, atol=1e-9 * size)
    assert found.counts.tolist() == np.bincount(labels, minlength=n).tolist()
    squares = ((X - centres[labels]) ** 2).sum(axis=1)
    assert found.square == pytest.approx(squares.sum(), rel=1e-9)
    spread = np.linalg.norm(centres - centres.mean(axis=0), axis=1).max() or 1.0
    moved = np.linalg.norm(expected - centres, axis=1).max()
    assert found.shift == pytest.approx(moved / spread, rel=1e-6, abs=1e-9)
    for j in range(n):
        own = np.flatnonzero(labels == j)
        nearest = own[np.argmin(squares[own].astype(np.float32))] if len(own) else -1
        assert found.rows[j] == nearest
        if len(own):
            np.testing.assert_array_equal(found.X[j], X[nearest])


def test_rows_as_near_to_two_centres_go_to_the_first() -> None:
    X = np.array([[-1.0], [0.0], [1.0]])
    found = lloyd(X, [[1.0], [-1.0]], [3])
    assert found.counts.tolist() == [2, 1]
    assert lloyd(X, [[-1.0], [1.0]], [1, 1, 1]).counts.tolist() == [2, 1]


def test_of_rows_as_near_to_a_centre_the_first_stands_for_it() -> None:
    X = np.array([[3.0], [1.0], [2.0], [0.0]]) / 3.0
    for chunks in ([4], [1, 1, 1, 1], [2, 2]):
        found = lloyd(X, [[0.5]], chunks)
        assert found.rows.tolist() == [1]


def test_centres_without_rows_go_to_the_rows_farthest_from_theirs() -> None:
    X = np.array([[0.0], [0.1], [9.0], [9.0], [-7.0], [0.2]])
    expected = [[X.mean()], [9.0], [-7.0]]
    for chunks in ([6], [1] * 6, [3, 3]):
        np.testing.assert_allclose(lloyd(X, [[0.0], [0.0], [0.0]], chunks).centres, expected)
    np.testing.assert_allclose(naive.kmeans(X, np.zeros((3, 1)), 1)[0], expected)


def test_rows_far_from_zero_lose_no_digits() -> None:
    X = np.random.default_rng(0).standard_normal((500, 3))
    centres = X[:20]
    plain, far = lloyd(X, centres, [500]), lloyd(X + 1e6, centres + 1e6, [500])
    np.testing.assert_array_equal(far.counts, plain.counts)
    np.testing.assert_allclose(far.centres - 1e6, plain.centres, atol=1e-8)


def test_sums_of_single_precision_rows_are_double() -> None:
    X = (np.random.default_rng(0).standard_normal((3000, 2)) + 1e4).astype(np.float32)
    found = lloyd(X, [[1e4, 1e4]], [700, 2300])
    np.testing.assert_allclose(found.centres[0], X.astype(np.float64).mean(axis=0), rtol=1e-14)


# ------------------------------------------------------------------------------------------------------------ seeds
@given(X=rows(dtype=np.float64), n=st.integers(1, 12))
def test_seeds_are_those_of_the_definition(X: Any, n: int) -> None:
    found = plus_plus(X, n, stream_generator(5, (12, 1)))
    expected = naive.kmeans_plus_plus(X, stream_generator(5, (12, 1)).random(n))
    assert found.tolist() == expected
    assert len(np.unique(X[found], axis=0)) == len(found) == min(n, len(np.unique(X, axis=0)))


# ---------------------------------------------------------------------------------------------------------- the rule
def test_centres_are_the_definitions_from_the_same_seeds() -> None:
    """The sample is all rows here: ten steps in memory, then two sweeps."""
    X = data_sets.gaussian_mixture(500, 3).X
    seeds = naive.kmeans_plus_plus(X, stream_generator(4, (12, 1)).random(12))
    expected, labels = naive.kmeans(X, X[seeds], 12)
    found = run(X, 12, seed=4, sweeps=2, nearest=False)
    np.testing.assert_allclose(found.basis.points, expected, rtol=1e-10, atol=1e-10)
    assert found.basis.rows.tolist() == [-1] * 12
    near = run(X, 12, seed=4, sweeps=2)
    squares = ((X - expected[labels]) ** 2).sum(axis=1)
    nearest = [min(np.flatnonzero(labels == j), key=lambda i: squares[i]) for j in range(12)]
    assert near.basis.rows.tolist() == nearest


def test_features_are_measured_by_their_lengthscale() -> None:
    X = np.random.default_rng(0).standard_normal((600, 2))
    stretched, kernel = X * [100.0, 0.01], Gaussian([100.0, 0.01])
    plain, same = run(X, 15), run(stretched, 15, kernel=kernel)
    assert same.basis.rows.tolist() == plain.basis.rows.tolist()
    centres = run(stretched, 15, kernel=kernel, nearest=False).basis.points
    np.testing.assert_allclose(centres, run(X, 15, nearest=False).basis.points * [100.0, 0.01], rtol=1e-9, atol=1e-12)
    assert run(stretched, 15, kernel=Laplacian([100.0, 0.01])).basis.rows.tolist() == plain.basis.rows.tolist()
    without = run(X, 15, kernel=Polynomial(degree=5)).basis.rows.tolist()
    assert without == plain.basis.rows.tolist()


@few_examples(0.3)
@given(X=rows(min_rows=2, max_rows=30, max_features=4), data=st.data())
def test_any_chunks_and_threads_give_the_same_rows(X: Any, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, min(len(X), 10)))
    chunk, threads = data.draw(st.integers(1, len(X))), data.draw(st.sampled_from([1, 2]))
    once = run(X, n)
    again = run(da.from_array(X, chunks=(chunk, X.shape[1])), n, threads=threads)
    assert again.basis.rows.tolist() == once.basis.rows.tolist()
    np.testing.assert_array_equal(X[once.basis.rows], once.basis.points)
    centres, other = (
        run(rows, n, nearest=False).basis.points
        for rows in (X, da.from_array(X, chunks=(chunk, X.shape[1])))
    )  # fmt: skip
    np.testing.assert_allclose(other, centres, rtol=1e-5 if X.dtype == np.float32 else 1e-9, atol=1e-9)


def test_ties_on_a_grid_do_not_depend_on_the_chunks() -> None:
    """Rows half way between centres, and rows as near to one as the next, wherever one looks."""
    X = np.stack(np.meshgrid(np.arange(9), np.arange(9)), -1).reshape(-1, 2) / 3.0
    for seed in range(2):
        expected = run(X, 15, seed=seed).basis.rows.tolist()
        for chunk in (3, 50):
            again = run(da.from_array(X, chunks=(chunk, 2)), 15, seed=seed, threads=2)
            assert again.basis.rows.tolist() == expected


def test_it_ends_when_the_centres_stand_still() -> None:
    X = np.random.default_rng(0).standard_normal((300, 2))
    X[:100] += 20
    X[100:200] -= 20
    rule = KMeans(sweeps=50)
    selection, session = select(rule, problem_of(X, n=3))
    assert len(session.records) == 3  # the sample, one step in which nothing moves, the nearest rows
    assert sorted(selection.basis.rows // 100) == [0, 1, 2]
    moving = select(KMeans(sweeps=4), problem_of(np.random.default_rng(1).standard_normal((9000, 5)), n=40))[1]
    assert [record.name for record in moving.records].count("k-means") == 4


def test_more_sweeps_quantise_better() -> None:
    X = np.random.default_rng(0).standard_normal((6000, 3))

    def square(sweeps: int) -> float:
        centres = run(X, 60, sweeps=sweeps, nearest=False).basis.points
        return float(((X[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum())

    squares = [square(sweeps) for sweeps in (0, 1, 4)]
    assert squares[0] > squares[1] > squares[2]


@pytest.mark.parametrize("nearest", [False, True])
def test_better_than_random_pivots(nearest: bool) -> None:
    X = np.random.default_rng(0).standard_normal((4000, 3))

    def left(rule: Any, seed: int) -> float:
        return float(select(rule, problem_of(X, n=60, seed=seed))[0].basis.residual(X).sum())

    ours = np.median([left(KMeans(nearest=nearest), seed) for seed in range(3)])
    theirs = np.median([left(as_rule("rpcholesky"), seed) for seed in range(3)])
    assert ours < 0.85 * theirs


def test_other_seeds_give_other_rows() -> None:
    X = np.random.default_rng(3).standard_normal((500, 3))
    drawn = [set(run(X, 20, seed=seed).basis.rows.tolist()) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_row_numbers_of_a_slice_stay_those_of_the_table() -> None:
    X = np.random.default_rng(0).standard_normal((100, 2))
    found, _ = select(KMeans(), Problem(open_table(X).slice(40, 90), Gaussian(1.0), 6))
    assert ((found.basis.rows >= 40) & (found.basis.rows < 90)).all()
    np.testing.assert_array_equal(found.basis.points, X[found.basis.rows])


# --------------------------------------------------------------------------------------------------------- poor rows
@pytest.mark.parametrize("nearest", [False, True])
def test_duplicate_rows_end_with_the_rank(nearest: bool) -> None:
    X = np.tile(np.random.default_rng(0).standard_normal((9, 2)), (30, 1))
    found = run(X, 40, nearest=nearest)
    assert (len(found.basis), found.ended) == (9, "rank")
    if nearest:
        assert sorted(found.basis.rows.tolist()) == list(range(9))  # of equal rows the first


def test_rows_that_the_sample_missed_are_found() -> None:
    """All but a few rows are equal: the sample holds too few that differ, and centres move to those that do."""
    X = np.zeros((50_000, 2))
    X[::1000] = np.random.default_rng(0).standard_normal((50, 2)) * 3
    found = run(X, 30, sweeps=3)
    assert (len(found.basis), found.ended) == (30, "size")


@pytest.mark.parametrize(("kernel", "rank"), [(Linear(), 4), (Polynomial(degree=2), 15)])
def test_kernels_of_low_rank(kernel: Kernel, rank: int) -> None:
    X = np.random.default_rng(0).standard_normal((400, 4))
    found = run(X, 40, kernel=kernel)
    assert (len(found.basis), found.ended) == (rank, "rank")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("nearest", [False, True])
def test_constant_columns_and_rows_all_alike(dtype: Any, nearest: bool) -> None:
    found = run(np.ones((30, 3), dtype), 5, nearest=nearest)
    assert (len(found.basis), found.ended) == (1, "rank")
    X = np.random.default_rng(0).standard_normal((150, 3)).astype(dtype)
    X[:, 1] = 1e3
    found = run(X, 10, nearest=nearest)
    assert (len(found.basis), found.ended, found.basis.points.dtype) == (10, "size", np.dtype(dtype))
    np.testing.assert_allclose(found.basis.points[:, 1], 1e3, rtol=1e-6)


def test_every_row_can_become_a_function() -> None:
    X = np.random.default_rng(2).standard_normal((9, 3))
    assert sorted(run(da.from_array(X, chunks=(4, 3)), 9).basis.rows.tolist()) == list(range(9))
    assert run(X[:1], 1).basis.rows.tolist() == [0]


@pytest.mark.parametrize("sweeps", [-1, 1.5, True, False])
def test_sweeps_out_of_range(sweeps: Any) -> None:
    with pytest.raises(ParameterError, match="sweeps"):
        KMeans(sweeps=sweeps)
