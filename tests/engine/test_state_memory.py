"""Memory of the states of a sweep: used again by later leaves, at the same bits, and never by a state in use."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from ordered_sums import OrderedSums
from reduction_rows.steps import STEPS

from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor, layout_of
from streamkernel.engine._state_memory import StateMemory
from streamkernel.kernels import Gaussian
from streamkernel.reductions import Reweighted, State, contract
from streamkernel.reductions.pools import PoolColumns, PoolGram
from streamkernel.reductions.sums import NormalEquations
from streamkernel.table import Table, open_table

ROWS = 60_000


def work_of(name: str, X: Any) -> Any:
    basis, pool = (Basis(Gaussian(2.0), X[rows], np.arange(len(X))[rows]) for rows in (slice(9), slice(9, 20)))
    equations = NormalEquations.of(basis, np.zeros(1), len(X))
    columns = PoolColumns(basis, pool, np.zeros(1), np.dtype(np.float32))
    return {"sums": equations, "pool": PoolGram(columns), "reweighted": Reweighted(equations, 2.0)}[name]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("name", ["sums", "pool", "reweighted"])
def test_later_leaves_use_the_memory_of_earlier_ones(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).standard_normal((ROWS, 2)).astype(np.float32)
    table, work, made, empty = open_table(X, X[:, 0]), work_of(name, X), [], type(work_of(name, X)).empty

    def counted(self: Any) -> Any:
        made.append(1)
        return empty(self)

    monkeypatch.setattr(type(work), "empty", counted)
    executor = ThreadExecutor(threads)
    session = Session(executor)
    found = session.sweep(work, table, "sums")
    assert session.records[0].tasks == 16
    # As many as wait in the tree, one for each level, and one for each thread, which may run behind the others.
    assert len(made) <= 5 + 2 * threads
    monkeypatch.setattr(StateMemory, "absorb", lambda self, left, right: work.absorb(left, right))
    anew = Session(executor).sweep(work, table, "sums")
    for field, value in vars(anew).items():
        np.testing.assert_array_equal(getattr(found, field), value, err_msg=field)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("name", ["sums", "pool", "reweighted"])
def test_sealed_states_wait_and_a_thread_has_one_open_state(
    name: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).standard_normal((ROWS, 2)).astype(np.float32)
    table, work, made, empty = open_table(X, X[:, 0]), work_of(name, X), [], type(work_of(name, X)).empty

    def counted(self: Any) -> Any:
        made.append(1)
        return empty(self)

    expected = Session(ThreadExecutor(2)).sweep(work, table, "sums")
    monkeypatch.setattr(contract, "_LEAST_SEALED", 1)
    monkeypatch.setattr(type(work), "empty", counted)
    found = Session(ThreadExecutor(threads)).sweep(work, table, "sums")
    assert len(made) <= threads
    for field, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(found, field), value, err_msg=field)


def test_a_sealed_state_holds_nothing_of_the_open_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "_LEAST_SEALED", 1)
    X = np.random.default_rng(1).standard_normal((200, 2))
    work = work_of("sums", X)
    memory = StateMemory(work)
    first, second = (work.map_block(block) for block in open_table(X, X[:, 0]).blocks(0, 200, 100))
    sealed = [memory.sealed(first), memory.sealed(second)]
    expected = work.combine(*(work.sealed(copy.deepcopy(state)) for state in (first, second)))
    assert {id(memory.empty()), id(memory.empty())} == {id(first), id(second)}
    found = memory.absorb(*sealed)
    assert found.keys() == expected.keys() == {"gram_triangle", "totals"}
    third = memory.sealed(work.map_block(next(open_table(X, X[:, 0]).blocks(0, 200, 200))))
    assert third["gram_triangle"] is sealed[1]["gram_triangle"]  # its memory, once it was added
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_sealed_states_of_a_reduction_that_does_not_only_add(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open state with rows of the leaf before would add them to the next leaf, too."""
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal((ROWS, 2)), rng.standard_normal((ROWS, 1))
    work = STEPS["smooth step with a band"](X, Y, list(range(5)))
    assert not work.adds_arrays
    table = open_table(X, Y)
    expected = executed(work, table)
    monkeypatch.setattr(contract, "_LEAST_SEALED", 1)
    found = executed(work, table)
    assert found.keys() == expected.keys()
    for field, value in expected.items():
        np.testing.assert_array_equal(found[field], value, err_msg=field)


def executed(work: Any, table: Table) -> State:
    """The open state of all rows, from several leaves of one thread."""
    layout = layout_of(work, table)
    assert len(layout.spans) > 2
    found: State = work.opened(ThreadExecutor(1).reduce(work, table, layout, lambda rows: None))
    return found


def test_small_matrices_stay_as_they_are() -> None:
    X = np.random.default_rng(1).standard_normal((40, 2))
    work = work_of("sums", X)
    state = work.map_block(next(open_table(X, X[:, 0]).blocks(0, 40, 40)))
    assert StateMemory(work).sealed(state) is state
    assert work.lower_bytes == 0


class LastSums(OrderedSums):
    """The sums of the last block, whose `combine` holds the arrays of the right state."""

    def combine(self, left: State, right: State) -> State:
        return right


def test_a_state_that_another_one_holds_is_not_used_again() -> None:
    work = LastSums()
    memory = StateMemory(work)
    left, right = (work.map_block(block) for block in open_table(np.ones((8, 1))).blocks(0, 8, 4))
    wanted = right["sums"].copy()
    found = memory.absorb(left, right)
    empty = memory.empty()
    assert empty is not None
    empty["sums"] += 1.0
    np.testing.assert_array_equal(found["sums"], wanted)


def test_empty_states_are_zero_and_apart() -> None:
    X = np.random.default_rng(1).standard_normal((300, 2))
    work = work_of("sums", X)
    memory = StateMemory(work)
    states = [work.map_block(block) for block in open_table(X, X[:, 0]).blocks(0, 300, 100)]
    whole = memory.absorb(memory.absorb(states[0], states[1]), states[2])
    before = {name: values.copy() for name, values in whole.items()}
    taken = [memory.empty() for _ in range(3)]
    assert {id(state) for state in taken[:2]} == {id(states[1]), id(states[2])}
    places = {values.ctypes.data for state in (*taken, whole) for values in state.values()}
    assert len(places) == 4 * len(whole)
    for state in taken:
        assert not any(values.any() for values in state.values())
    for name, values in whole.items():
        np.testing.assert_array_equal(values, before[name])
