"""Smola & Schoelkopf 2000, Algorithm 2, as the paper has it: the same candidates give the same picks."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from problems import GivenDraw, RecordingDraw, problem_of, select

from streamkernel.selection import Greedy, as_rule
from streamkernel.selection.draws import UniformDraw
from streamkernel.selection.takes import Fixed

CARD = naive.card()


def test_the_rule_by_its_name() -> None:
    """Uniform 59, one pick a sweep, function-space gain, nothing else in the score."""
    single, split, shared = (as_rule("sgma", pool=pool, picks=8) for pool in ("single", "split", "shared"))
    assert isinstance(single, Greedy)
    assert isinstance(single.draw, UniformDraw)
    assert (single.draw.per_pick, single.draw.all_rows, single.kappa) == (59, True, 0.0)
    assert single.take == Fixed(1)
    assert isinstance(split, Greedy)
    assert isinstance(shared, Greedy)
    assert (split.take, shared.take, split.root, shared.root) == (Fixed(8), Fixed(8), True, True)


@pytest.mark.parametrize("seed", range(2))
def test_single_pools_are_algorithm_2_with_that_stream(seed: int) -> None:
    """Draws recorded, replayed literally: T-form, an m-vector a pick, eq. (22) and (31)."""
    X = np.random.default_rng(seed).standard_normal((300, 3))
    K = naive.gaussian(X, X, 1.0)
    draw = RecordingDraw(59, all_rows=True)
    selection, session = select(Greedy("sgma", draw, 0.0, Fixed(1)), problem_of(X, n=20, seed=seed))
    expected, _ = naive.sgma(K, draw.drawn)
    assert [len(drawn) for drawn in draw.drawn] == [59] * 20
    assert selection.basis.rows.tolist() == expected.picks
    np.testing.assert_allclose(selection.gains * 300, expected.scores, rtol=1e-8)
    assert len(session.records) == 21  # one gather, and one sweep a pick
    assert selection.ended == "size"


def test_the_named_rule_draws_the_same() -> None:
    X = np.random.default_rng(7).standard_normal((200, 2))
    recorded, _ = select(Greedy("sgma", RecordingDraw(59, all_rows=True), 0.0, Fixed(1)), problem_of(X, n=6, seed=7))
    named, _ = select(as_rule("sgma"), problem_of(X, n=6, seed=7))
    np.testing.assert_array_equal(recorded.basis.rows, named.basis.rows)


@pytest.mark.parametrize("root", [False, True])
def test_all_rows_as_candidates_give_the_picks_of_the_card(root: bool) -> None:
    draw = GivenDraw(40, all_rows=True, subsets=(tuple(range(40)),) * 6)
    selection, _ = select(Greedy("sgma", draw, 0.0, Fixed(1), root=root), problem_of(CARD.X, n=6))
    assert selection.basis.rows.tolist() == [17, 4, 27, 33, 29, 20]
    np.testing.assert_allclose(
        40 - 40 * np.cumsum(selection.gains), [31.8666, 25.0118, 18.3675, 14.5094, 11.0949, 8.62676], rtol=1e-5
    )


@pytest.mark.parametrize("root", [False, True])
def test_split_pool_of_the_card(root: bool) -> None:
    draw = GivenDraw(3, all_rows=True, split=True, subsets=(tuple(CARD.pool),))
    selection, session = select(Greedy("sgma", draw, 0.0, Fixed(4), root=root), problem_of(CARD.X, n=4))
    assert selection.basis.rows.tolist() == [17, 38, 12, 33]
    assert len(session.records) == 2


@pytest.mark.parametrize("pool", ["split", "shared"])
def test_pools_for_several_picks_are_one_pick_at_a_time_on_them(pool: str) -> None:
    X = np.random.default_rng(3).standard_normal((400, 3))
    K = naive.gaussian(X, X, 1.0)
    draw = RecordingDraw(12, all_rows=True, split=pool == "split")
    selection, session = select(Greedy("sgma", draw, 0.0, Fixed(5), root=True), problem_of(X, n=20, seed=3))
    steps: list[Any] = []
    for drawn in draw.drawn:
        assert len(drawn) == 60
        steps += naive.split_pool(drawn, 5) if pool == "split" else [drawn] * 5
    expected = naive.greedy(K, steps, naive.function_space)
    assert selection.basis.rows.tolist() == expected.picks
    np.testing.assert_allclose(400 - 400 * np.cumsum(selection.gains), expected.traces, rtol=1e-6)
    assert len(session.records) == 5


def test_more_candidates_than_rows() -> None:
    """m < kappa: every row is a candidate, and a basis of all rows is found."""
    X = np.random.default_rng(0).standard_normal((12, 2))
    selection, _ = select(as_rule("sgma"), problem_of(X, n=12))
    assert sorted(selection.basis.rows.tolist()) == list(range(12))


def test_candidates_of_a_pool_are_fresh_and_outside_the_basis() -> None:
    X = np.random.default_rng(0).standard_normal((80, 2))
    draw = RecordingDraw(10, all_rows=True)
    selection, _ = select(Greedy("sgma", draw, 0.0, Fixed(1)), problem_of(X, n=15, seed=1))
    for t, drawn in enumerate(draw.drawn):
        assert len(set(drawn)) == 10
        assert not set(drawn) & set(selection.basis.rows[:t].tolist())
    assert len({tuple(drawn) for drawn in draw.drawn}) == 15
