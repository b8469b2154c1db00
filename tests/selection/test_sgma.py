"""Smola & Schoelkopf 2000, Algorithm 2, as the paper has it: the same candidates give the same picks."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from problems import GivenDraw, RecordingDraw, problem_of, select

from streamkernel.selection import Greedy, as_rule
from streamkernel.selection._draws import UniformDraw
from streamkernel.selection.greedy import Form, GramForm, RootForm
from streamkernel.selection.rounds import Fixed
from streamkernel.selection.scores import FunctionSpace

CARD = naive.card()


def test_the_rule_by_its_name() -> None:
    """Uniform 59, one pick a sweep, function-space gain, nothing else in the score."""
    single, split, shared = (as_rule("sgma", pool=pool, picks=8) for pool in ("single", "split", "shared"))
    assert isinstance(single, Greedy)
    assert isinstance(single.draw, UniformDraw)
    assert single.draw == UniformDraw(all_rows=True, level=(0.05, 0.95))
    assert single.draw.pool_size(problem_of(np.zeros((10_000, 1)), n=5), 1, 0) == 59
    assert single.score == FunctionSpace()
    assert single.take == Fixed(1)
    assert isinstance(split, Greedy)
    assert isinstance(shared, Greedy)
    assert (split.take, shared.take) == (Fixed(8), Fixed(8))
    assert split.form == shared.form == RootForm()


@pytest.mark.parametrize("seed", range(2))
def test_single_pools_are_algorithm_2_with_that_stream(seed: int) -> None:
    """Draws recorded, replayed literally: T-form, an m-vector a pick, eq. (22) and (31)."""
    X = np.random.default_rng(seed).standard_normal((300, 3))
    K = naive.gaussian(X, X, 1.0)
    draw = RecordingDraw(59, all_rows=True)
    selection, session = select(Greedy("sgma", draw, FunctionSpace(), Fixed(1)), problem_of(X, n=20, seed=seed))
    expected, _ = naive.sgma(K, draw.drawn)
    assert [len(drawn) for drawn in draw.drawn] == [59] * 20
    assert selection.basis.rows.tolist() == expected.picks
    np.testing.assert_allclose(selection.gains, expected.scores, rtol=1e-8)
    assert len(session.records) == 21  # one gather, and one sweep a pick
    assert selection.ended == "size"


def test_the_named_rule_draws_the_same() -> None:
    X = np.random.default_rng(7).standard_normal((200, 2))
    recorded, _ = select(
        Greedy("sgma", RecordingDraw(all_rows=True, level=(0.05, 0.95)), FunctionSpace(), Fixed(1)),
        problem_of(X, n=6, seed=7),
    )
    named, _ = select(as_rule("sgma"), problem_of(X, n=6, seed=7))
    np.testing.assert_array_equal(recorded.basis.rows, named.basis.rows)


@pytest.mark.parametrize("form", [GramForm(), RootForm()])
def test_all_rows_as_candidates_give_the_picks_of_the_card(form: Form) -> None:
    draw = GivenDraw(40, all_rows=True, subsets=(tuple(range(40)),) * 6)
    selection, _ = select(Greedy("sgma", draw, FunctionSpace(), Fixed(1), form), problem_of(CARD.X, n=6))
    assert selection.basis.rows.tolist() == [17, 4, 27, 33, 29, 20]
    np.testing.assert_allclose(
        40 - np.cumsum(selection.gains), [31.8666, 25.0118, 18.3675, 14.5094, 11.0949, 8.62676], rtol=1e-5
    )


@pytest.mark.parametrize("form", [GramForm(), RootForm()])
def test_split_pool_of_the_card(form: Form) -> None:
    draw = GivenDraw(3, all_rows=True, split=True, subsets=(tuple(CARD.pool),))
    selection, session = select(Greedy("sgma", draw, FunctionSpace(), Fixed(4), form), problem_of(CARD.X, n=4))
    assert selection.basis.rows.tolist() == [17, 38, 12, 33]
    assert len(session.records) == 2


@pytest.mark.parametrize("pool", ["split", "shared"])
def test_pools_for_several_picks_are_one_pick_at_a_time_on_them(pool: str) -> None:
    X = np.random.default_rng(3).standard_normal((400, 3))
    K = naive.gaussian(X, X, 1.0)
    draw = RecordingDraw(12, all_rows=True, split=pool == "split")
    selection, session = select(
        Greedy("sgma", draw, FunctionSpace(), Fixed(5), RootForm()), problem_of(X, n=20, seed=3)
    )
    steps: list[Any] = []
    for drawn in draw.drawn:
        assert len(drawn) == 60
        steps += naive.split_pool(drawn, 5) if pool == "split" else [drawn] * 5
    expected = naive.greedy(K, steps, naive.function_space)
    assert selection.basis.rows.tolist() == expected.picks
    np.testing.assert_allclose(400 - np.cumsum(selection.gains), expected.traces, rtol=1e-6)
    assert len(session.records) == 5


def test_more_candidates_than_rows() -> None:
    """m < kappa: every row is a candidate, and a basis of all rows is found."""
    X = np.random.default_rng(0).standard_normal((12, 2))
    selection, _ = select(as_rule("sgma"), problem_of(X, n=12))
    assert sorted(selection.basis.rows.tolist()) == list(range(12))


def test_candidates_of_a_pool_are_fresh_and_outside_the_basis() -> None:
    X = np.random.default_rng(0).standard_normal((80, 2))
    draw = RecordingDraw(10, all_rows=True)
    selection, _ = select(Greedy("sgma", draw, FunctionSpace(), Fixed(1)), problem_of(X, n=15, seed=1))
    for t, drawn in enumerate(draw.drawn):
        assert len(set(drawn)) == 10
        assert not set(drawn) & set(selection.basis.rows[:t].tolist())
    assert len({tuple(drawn) for drawn in draw.drawn}) == 15
