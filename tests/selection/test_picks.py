"""Picks from the sums of a pool against one pick at a time on the dense kernel matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import naive
import numpy as np
import pytest
from problems import (
    GivenDraw,
    blocks,
    columns_of,
    pool_columns,
    pool_sums,
    problem_of,
    right_picks,
    select,
    smooth_pool,
)

from streamkernel.engine import ThreadExecutor
from streamkernel.kernels import Gaussian, Polynomial
from streamkernel.linalg import RidgePath
from streamkernel.reductions.pools import PoolGram, PoolSums
from streamkernel.selection import _picks
from streamkernel.selection._picks import Picks, _over_root, lazy_picks
from streamkernel.selection.greedy import Form, GramForm, Greedy, RootForm
from streamkernel.selection.rounds import Fixed
from streamkernel.selection.scores import FunctionSpace, Mixture
from streamkernel.table import RowBlock

CARD = naive.card()
DIAGONAL_TOLERANCE = {"pivot_tolerance": 1e-12, "digits": 1e-6}


def picks_of(
    X: Any,
    Y: Any,
    basis: list[int],
    pool: list[int],
    count: int,
    *,
    kappa: float,
    rho: float,
    weights: Any = None,
    scale: Any = None,
    raw: bool = False,
    **options: Any,
) -> Picks:
    Y = columns_of(Y)
    sums = pool_sums(X, Y if kappa > 0 else None, basis, pool, weights)
    if scale is None:
        scale = np.ones(Y.shape[1] if kappa > 0 else 0)
    score = FunctionSpace() if raw else Mixture(kappa, rho)
    limits = {**DIAGONAL_TOLERANCE, **options}
    return lazy_picks(sums, score, count, scale=scale, diagonal=np.ones(len(pool)), **limits)


def random_rows(m: int, p: int, d: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, p))
    return X, np.sin(X @ rng.standard_normal((p, d))) + 0.1 * rng.standard_normal((m, d))


# ------------------------------------------------------------------------------------------ the numbers of the card
def test_function_space_picks_of_the_card() -> None:
    basis = [0, 5, 9]
    pool = [i for i in CARD.pool if i not in basis]
    found = picks_of(CARD.X, CARD.y, basis, pool, 4, kappa=0.0, rho=0.0, raw=True)
    assert [pool[i] for i in found.order] == [17, 12, 38, 3]
    traces = naive.residual_trace(CARD.K, basis) - np.cumsum(found.gains)
    np.testing.assert_allclose(traces, [20.9244, 15.2620, 12.2872, 9.75942], rtol=1e-5)
    np.testing.assert_allclose(found.trace_gains, found.gains, rtol=1e-12)


def test_greedy_ridge_picks_of_the_card() -> None:
    basis = [0, 5, 9]
    pool = [i for i in CARD.pool if i not in basis]
    found = picks_of(CARD.X, CARD.y, basis, pool, 4, kappa=1.0, rho=0.1)
    assert [pool[i] for i in found.order] == [10, 19, 3, 31]
    np.testing.assert_allclose(found.gains * (CARD.y @ CARD.y), [11.7421, 2.14361, 0.210015, 0.100486], rtol=2e-5)


def test_split_pool_of_the_card() -> None:
    found = picks_of(CARD.X, CARD.y, [], CARD.pool, 4, kappa=0.0, rho=0.0, groups=np.arange(12) // 3)
    assert [CARD.pool[i] for i in found.order] == [17, 38, 12, 33]


def test_first_six_picks_of_the_card_when_all_rows_are_candidates() -> None:
    found = picks_of(CARD.X, CARD.y, [], list(range(40)), 6, kappa=0.0, rho=0.0, raw=True)
    assert found.order.tolist() == [17, 4, 27, 33, 29, 20]
    np.testing.assert_allclose(
        40 - np.cumsum(found.gains), [31.8666, 25.0118, 18.3675, 14.5094, 11.0949, 8.62676], rtol=1e-5
    )


# ------------------------------------------------------------------------------------------ any data, any objective
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("kappa", [0.0, 0.6, 1.0])
def test_equal_to_one_pick_at_a_time(kappa: float, targets: int, weighted: bool, seed: int) -> None:
    X, Y = random_rows(90, 3, targets, seed)
    rng = np.random.default_rng(seed + 100)
    weights = rng.uniform(0.2, 4.0, len(X)) if weighted else None
    order = rng.permutation(len(X))
    basis, pool = order[:7].tolist(), np.sort(order[7:47]).tolist()
    K = naive.gaussian(X, X, 1.0)
    options: dict[str, Any] = {"Y": Y, "rho": 0.3, "kappa": kappa, "weights": weights}
    expected = naive.greedy(K, [pool] * 15, naive.prediction, basis, **options)
    found = picks_of(X, Y, basis, pool, 15, kappa=kappa, rho=0.3, weights=weights)
    assert [pool[i] for i in found.order] == expected.picks
    np.testing.assert_allclose(found.gains, expected.scores, rtol=1e-8)
    assert found.ended == "count"


@pytest.mark.parametrize("seed", range(3))
def test_split_pools_look_at_their_own_candidates_only(seed: int) -> None:
    X, Y = random_rows(60, 2, 1, seed)
    pool = np.random.default_rng(seed).permutation(60)[:40].tolist()
    K = naive.gaussian(X, X, 1.0)
    expected = naive.greedy(K, naive.split_pool(pool, 8), naive.prediction, Y=Y, rho=0.5, kappa=0.6)
    found = picks_of(X, Y, [], pool, 8, kappa=0.6, rho=0.5, groups=np.arange(40) // 5)
    assert [pool[i] for i in found.order] == expected.picks


@pytest.mark.parametrize("form", [GramForm(), RootForm()])
def test_a_sub_pool_without_independent_candidates_gives_no_pick(form: Form) -> None:
    """As in Algorithm 2: its turn goes to the next one."""
    X, _ = random_rows(12, 2, 1, 0)
    X = np.concatenate([X, X[:3], X])  # rows 12, 13 and 14 are copies of the first three
    pool = [0, 1, 2, 12, 13, 14, 3, 4, 5, 6, 7, 8]
    steps = [[0], [1], [2], [12, 13, 14], [3, 4, 5], [6, 7, 8]]
    expected, _ = naive.sgma(naive.gaussian(X, X, 1.0), steps)
    groups = np.repeat(np.arange(6), [len(step) for step in steps])
    work = form.reduction(pool_columns(X, None, [], pool))
    sums = work.finalize(work.map_block(next(blocks(X, None, [len(X)]))))
    limits: dict[str, Any] = {"scale": np.zeros(0), "diagonal": np.ones(12), "pivot_tolerance": 1e-12}
    found = form.picks(sums, FunctionSpace(), 6, groups=groups, **limits)
    assert [pool[i] for i in found.order] == expected.picks
    assert len(expected.picks) == 5
    assert found.ended == "rank"


def test_a_chosen_ridge_is_the_one_that_a_model_on_the_basis_takes() -> None:
    X, Y = random_rows(200, 2, 2, 4)
    basis, pool = list(range(12)), list(range(12, 80))
    sums = pool_sums(X, Y, basis, pool, None)
    scale = np.array([0.5, 3.0])
    alpha = RidgePath.of(sums.H, sums.g, np.diagonal(sums.YY), sums.weight).choose(scale**2)
    options: dict[str, Any] = {"scale": scale, "diagonal": np.ones(len(pool)), **DIAGONAL_TOLERANCE}
    given_alpha, found, first = (lazy_picks(sums, Mixture(1.0, rho), 10, **options) for rho in (alpha, None, 0.3))
    np.testing.assert_array_equal(found.order, given_alpha.order)
    np.testing.assert_array_equal(found.gains, given_alpha.gains)
    assert not np.array_equal(found.gains, first.gains)


@pytest.mark.parametrize("rho", [1e-4, 3.0])
@pytest.mark.parametrize("rank", [4, 40])
def test_the_projection_of_a_ridge_that_the_digits_carry(rank: int, rho: float) -> None:
    rng = np.random.default_rng(rank)
    G, B = rng.standard_normal((rank, 6)), rng.standard_normal((6, 3))
    H = G.T @ G
    root = _over_root(H, RidgePath.of(H, B, np.full(3, 100.0), 40), rho)(B)
    np.testing.assert_allclose(root.T @ root, B.T @ np.linalg.solve(H + rho * np.eye(6), B), rtol=1e-9)


def test_the_projection_of_less_of_a_ridge_is_by_eigenvalues_above_0() -> None:
    H, B = np.diag([2.0, 1.0, 0.0, -1e-9]), np.ones((4, 1))
    root = _over_root(H, RidgePath.of(H, B, np.full(1, 9.0), 40), 0.0)(B)
    np.testing.assert_allclose(root.T @ root, 1.0 / 2.0 + 1.0 / 1.0, rtol=1e-12)


@pytest.mark.parametrize(("share", "factored"), [(0.5, False), (2.0, True)])
def test_only_a_ridge_above_the_rounding_has_a_factor(
    monkeypatch: pytest.MonkeyPatch, share: float, factored: bool
) -> None:
    """Pivots of less than that are digits of nothing; and where there is no factor after all, eigenvalues serve."""
    H, B, tried = np.diag([2.0, 1.0, -1e-9]), np.ones((3, 1)), []
    monkeypatch.setattr(_picks, "factor_lower", lambda factor: tried.append(factor.copy()) or 0)
    path = RidgePath.of(H, B, np.full(1, 9.0), 40)
    rho = share * path.smallest_alpha
    root = _over_root(H, path, rho)(B)
    assert bool(tried) == factored
    np.testing.assert_allclose(root.T @ root, (1.0 / (np.array([2.0, 1.0, 0.0]) + rho)).sum(), rtol=1e-9)


@pytest.mark.parametrize("kappa", [0.0, 0.4, 1.0])
def test_sums_in_single_precision_give_the_picks_of_the_same_sums_in_double(kappa: float) -> None:
    X, Y = random_rows(3000, 3, 2, 7)
    basis, pool = list(range(30)), list(range(30, 330))
    sums = pool_sums(X, Y, basis, pool, None)
    single = replace(sums, C=sums.C.astype(np.float32))
    double = replace(sums, C=single.C.astype(np.float64))
    before = single.C.copy()
    options: dict[str, Any] = {"scale": np.ones(2), "diagonal": np.ones(len(pool)), **DIAGONAL_TOLERANCE}
    found, expected = (lazy_picks(some, Mixture(kappa, 0.1), 60, **options) for some in (single, double))
    np.testing.assert_array_equal(found.order, expected.order)
    np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-4, atol=1e-5 * expected.gains[0])
    assert found.gains.dtype == np.float64
    np.testing.assert_array_equal(single.C, before)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("kappa", [0.0, 0.4, 1.0])
def test_blocks_of_picks_change_nothing(kappa: float, single: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Picks are subtracted from the matrices in blocks; one block is as long as no block."""
    X, Y = random_rows(900, 4, 2, 8)
    basis, pool = list(range(30)), list(range(30, 330))
    sums = pool_sums(X, Y, basis, pool, None)
    if single:
        sums = replace(sums, C=sums.C.astype(np.float32))
    options: dict[str, Any] = {"scale": np.ones(2), "diagonal": np.ones(len(pool)), **DIAGONAL_TOLERANCE}
    expected = found_in(sums, kappa, 50, options, monkeypatch, block=60)
    for block, panel in ((1, 300), (7, 300), (10, 7), (25, 64)):
        found = found_in(sums, kappa, 50, options, monkeypatch, block, panel)
        np.testing.assert_array_equal(found.order, expected.order)
        np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-4 if single else 1e-9)
        np.testing.assert_allclose(found.trace_gains, expected.trace_gains, rtol=1e-4 if single else 1e-9)


def found_in(
    sums: PoolSums, kappa: float, count: int, options: Any, patch: pytest.MonkeyPatch, block: int, panel: int = 256
) -> Picks:
    """Picks with other sizes of blocks and panels. The sums stay as they are."""
    patch.setattr(_picks, "BLOCK", block)
    patch.setattr(_picks, "_PANEL", panel)
    patch.setattr(_picks, "_COLUMNS", panel)
    before = sums.S.copy(), sums.C.copy()
    found = lazy_picks(sums, Mixture(kappa, 0.1), count, **options)
    np.testing.assert_array_equal(sums.S, before[0])
    np.testing.assert_array_equal(sums.C, before[1])
    return found


@pytest.mark.parametrize("kappa", [0.4, pytest.param(1.0, marks=pytest.mark.slow)])
def test_sums_that_are_overwritten_and_threads_give_the_same_bits(kappa: float) -> None:
    X, Y = random_rows(1200, 6, 1, 9)
    pool = list(range(700))
    options: dict[str, Any] = {"scale": np.ones(1), "diagonal": np.ones(len(pool)), **DIAGONAL_TOLERANCE}
    made = [pool_sums(X, Y, basis, pool, None) for basis in ([], [701, 702])]
    for sums in made:
        expected = lazy_picks(sums, Mixture(kappa, 0.1), 300, **options)
        assert len(expected.order) > 256  # two blocks have been subtracted
        fixed = replace(sums, C=sums.C.copy(), S=sums.S.copy())
        fixed.S.flags.writeable = fixed.C.flags.writeable = False  # as from a cluster
        copied = replace(sums, C=sums.C.copy(), S=sums.S.copy())
        between = replace(sums, C=unaligned(sums.C), S=unaligned(sums.S))
        for given, threads in ((fixed, 1), (between, 1), (copied, 1), (sums, 3)):
            run = ThreadExecutor(threads).side_by_side
            found = lazy_picks(given, Mixture(kappa, 0.1), 300, overwrite=True, run=run, **options)
            np.testing.assert_array_equal(found.order, expected.order)
            np.testing.assert_array_equal(found.gains, expected.gains)
        assert not np.array_equal(copied.S, fixed.S)


def unaligned(matrix: Any) -> Any:
    """A copy that begins between two numbers, as arrays from a network may."""
    found = np.zeros(matrix.nbytes + 1, np.uint8)[1:].view(matrix.dtype).reshape(matrix.shape)
    found[:] = matrix
    assert not found.flags.aligned
    return found


def test_a_ridge_is_in_units_of_the_kernel() -> None:
    """Of the mean of k(x, x), which is 1 for the kernels of the other tests."""
    X, Y = random_rows(80, 2, 1, 6)
    kernel, basis, pool = Polynomial(degree=2, gamma=3.0), [0, 1], list(range(5, 45))
    K = kernel(X)
    work = PoolGram(pool_columns(X, Y, basis, pool, kernel))
    sums = work.finalize(work.map_block(next(blocks(X, Y, [80]))))
    options: dict[str, Any] = {"scale": np.ones(1), "diagonal": np.diagonal(K)[pool], **DIAGONAL_TOLERANCE}
    found = lazy_picks(sums, Mixture(1.0, 0.3), 3, **options)
    rho = 0.3 * np.trace(K) / 80
    expected = naive.greedy(K, [pool] * 3, naive.prediction, basis, Y=Y, rho=rho)
    assert [pool[i] for i in found.order] == expected.picks
    np.testing.assert_allclose(found.gains, expected.scores, rtol=1e-7)


def test_targets_are_divided_by_their_spread() -> None:
    X, Y = random_rows(80, 2, 2, 5)
    scale = np.array([1e3, 1e-3])
    pool = list(range(5, 45))
    plain = picks_of(X, Y, list(range(5)), pool, 10, kappa=1.0, rho=0.3)
    scaled = picks_of(X, Y * scale, list(range(5)), pool, 10, kappa=1.0, rho=0.3, scale=scale)
    np.testing.assert_array_equal(plain.order, scaled.order)
    np.testing.assert_allclose(plain.gains, scaled.gains, rtol=1e-9)


# -------------------------------------------------------------------------------------------------------- the guards
def test_worn_digits_end_a_round_rather_than_pick_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    X = smooth_pool()
    pool = list(range(200))
    K = naive.gaussian(X, X, 1.5)
    sums = pool_sums(X / 1.5, None, [], pool)
    limits: dict[str, Any] = {"scale": np.zeros(0), "diagonal": np.ones(200), "pivot_tolerance": 1e-12}
    expected = right_picks(K, 60)
    found = lazy_picks(sums, FunctionSpace(), 120, digits=1e-6, **limits)
    assert found.ended == "digits"
    t = len(found.order)
    assert 10 < t < 120
    assert found.order[:60].tolist() == expected[:t]
    blind = lazy_picks(sums, FunctionSpace(), 120, digits=0.0, **limits)
    assert blind.order[:t].tolist() == found.order.tolist()
    monkeypatch.setattr(_picks, "BLOCK", 1)  # no pick of a block is the first of the sums
    again = lazy_picks(sums, FunctionSpace(), 120, digits=1e-6, **limits)
    assert (again.ended, len(again.order)) == ("digits", t)


def test_what_has_no_eigenvalue_is_not_projected_out() -> None:
    """Without a ridge: eigenvalues of 0 are rounding, and so are the products with their vectors."""
    X, Y = random_rows(60, 3, 1, 2)
    pool = list(range(8, 40))
    alone, sums = (pool_sums(X, Y, basis, pool, None) for basis in ([], [0, 1]))
    rounding = replace(alone, H=np.zeros((2, 2)), E=sums.E, g=sums.g)
    options: dict[str, Any] = {"scale": np.ones(1), "diagonal": np.ones(len(pool)), **DIAGONAL_TOLERANCE}
    found, expected = (lazy_picks(some, Mixture(1.0, 0.0), 6, **options) for some in (rounding, alone))
    np.testing.assert_array_equal(found.order, expected.order)
    np.testing.assert_array_equal(found.gains, expected.gains)


def test_columns_of_which_nothing_is_left_end_a_round_too() -> None:
    """Six rows score, so that six picks explain every column, though the functions are independent elsewhere."""
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((40, 3)), rng.standard_normal((40, 1))
    reduction = PoolGram(pool_columns(X, Y, [], range(20)))
    sums = reduction.finalize(reduction.map_block(RowBlock(0, X[20:26], Y[20:26], None)))
    limits: dict[str, Any] = {"scale": np.ones(1), "diagonal": np.ones(20), "pivot_tolerance": 1e-12}
    found = lazy_picks(sums, Mixture(1.0, 0.0), 12, digits=1e-6, **limits)
    assert found.ended == "digits"
    assert len(found.order) == 6


def test_rounds_go_on_with_fresh_sums_until_all_are_picked() -> None:
    """ALGORITHMS 1.3: 120 picks out of a smooth pool of 200, all right when worn sums are made afresh."""
    X, count = 2 * smooth_pool(), 120
    expected = right_picks(naive.gaussian(X, X, 1.5), count)
    draw = GivenDraw(200, 0, subsets=(tuple(range(200)),) * 20)
    rule = Greedy("given", draw, FunctionSpace(), Fixed(count))
    selection, session = select(rule, problem_of(X, n=count, kernel=Gaussian(1.5)))
    assert selection.basis.rows.tolist() == expected
    assert len(session.records) >= 3


def test_duplicates_are_never_picked_twice() -> None:
    X = np.repeat(np.random.default_rng(1).standard_normal((6, 2)), 4, axis=0)
    found = picks_of(X, X[:, 0], [], list(range(24)), 24, kappa=0.5, rho=0.1, digits=0.0)
    assert found.ended == "rank"
    assert len(np.unique(X[found.order], axis=0)) == len(found.order) == 6


def test_trace_gains_end_the_round_at_the_tolerance() -> None:
    X, Y = random_rows(60, 2, 1, 3)
    free = picks_of(X, Y, [], list(range(60)), 20, kappa=1.0, rho=0.1, stop_after=1e9)
    goal = float(free.trace_gains[:8].sum()) - 1e-9
    found = picks_of(X, Y, [], list(range(60)), 20, kappa=1.0, rho=0.1, stop_after=goal)
    assert found.ended == "tolerance"
    assert found.order.tolist() == free.order[:8].tolist()


def test_constant_targets_do_not_divide_by_zero() -> None:
    X, _ = random_rows(30, 2, 1, 0)
    found = picks_of(X, np.zeros(30), [], list(range(30)), 5, kappa=1.0, rho=0.1)
    assert len(found.order) == 5
    assert np.isfinite(found.gains).all()


def test_an_empty_pool_gives_no_picks() -> None:
    X, Y = random_rows(10, 2, 1, 0)
    assert len(picks_of(X, Y, [0], [], 3, kappa=1.0, rho=0.1).order) == 0
