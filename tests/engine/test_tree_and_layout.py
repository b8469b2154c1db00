"""The two halves of equal bits: a tree set by the number of spans, spans set by the table and the reduction."""

from __future__ import annotations

import pickle
import threading
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from problems import basis_of, table_of_chunks

from streamkernel.engine import ThreadExecutor, layout_of
from streamkernel.engine._tree import PairingTree, parent_is_complete
from streamkernel.engine.layout import block_rows, span_rows
from streamkernel.reductions import Moments
from streamkernel.reductions.sums import NormalEquations
from streamkernel.table import open_table


def combine(left: str, right: str) -> str:
    return f"({left}{right})"


def grown(leaves: int, order: Any) -> str:
    tree: PairingTree[str] = PairingTree(leaves, combine)
    for leaf in order:
        tree.add(leaf, f"{leaf},")
    return tree.root()


@given(st.data())
def test_the_tree_does_not_depend_on_the_order_of_arrival(data: st.DataObject) -> None:
    leaves = data.draw(st.integers(1, 40))
    order = data.draw(st.permutations(range(leaves)))
    assert grown(leaves, order) == grown(leaves, range(leaves))


def test_the_tree_pairs_neighbours() -> None:
    assert grown(1, [0]) == "0,"
    assert grown(5, range(5)) == "(((0,1,)(2,3,))4,)"
    assert grown(6, range(6)) == "(((0,1,)(2,3,))(4,5,))"
    assert parent_is_complete(5, 0, 4)
    assert not parent_is_complete(5, 0, 3)


@given(st.integers(1, 200))
def test_rows_stay_in_order(leaves: int) -> None:
    """Reductions such as Gather concatenate: left rows come before right ones."""
    tree: PairingTree[list[int]] = PairingTree(leaves, lambda left, right: left + right)
    for leaf in reversed(range(leaves)):
        tree.add(leaf, [leaf])
    assert tree.root() == list(range(leaves))


@given(st.integers(2, 200))
def test_few_states_wait_when_leaves_come_in_order(leaves: int) -> None:
    """At most one a level: log2 of the leaves, which is what the plan promises."""
    tree: PairingTree[str] = PairingTree(leaves, lambda left, right: "")
    for leaf in range(leaves):
        tree.add(leaf, "")
        assert len(tree._waiting) <= leaves.bit_length()


def test_leaves_from_many_threads() -> None:
    tree: PairingTree[str] = PairingTree(64, combine)
    threads = [threading.Thread(target=tree.add, args=(leaf, f"{leaf},")) for leaf in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tree.root() == grown(64, range(64))


def test_a_missing_or_repeated_leaf_is_noticed() -> None:
    tree: PairingTree[str] = PairingTree(3, combine)
    tree.add(0, "0")
    with pytest.raises(AssertionError):
        tree.root()


# ------------------------------------------------------------------------------------------------------------- layout
def normal_equations(X: Any, n: int) -> NormalEquations:
    return NormalEquations(basis_of(X, range(n)), np.zeros(1))


def test_layout_is_a_function_of_table_and_reduction(tmp_path: Any) -> None:
    X = np.random.default_rng(0).standard_normal((50_000, 3))
    first = table_of_chunks(tmp_path / "a", X, X[:, 0], 1000)
    second = table_of_chunks(tmp_path / "b", X + 1, X[:, 1], 1000)
    work = normal_equations(X, 10)
    layout = layout_of(work, first)
    assert layout == layout_of(work, second)
    assert layout == layout_of(*pickle.loads(pickle.dumps((work, first))))
    assert len(layout.spans) > 5
    assert [a for _, a in layout.spans][:-1] == [b for b, _ in layout.spans][1:]
    assert layout.spans[0][0] == 0
    assert layout.spans[-1][1] == 50_000
    assert all(start % 1000 == 0 for start, _ in layout.spans)
    other = table_of_chunks(tmp_path / "c", X, X[:, 0], 3000)
    assert all(start % 3000 == 0 for start, _ in layout_of(work, other).spans)


def test_a_slice_is_cut_at_the_same_chunks(tmp_path: Any) -> None:
    X = np.zeros((20_000, 2))
    table = table_of_chunks(tmp_path / "a", X, X[:, 0], 1000).slice(500, 19_700)
    spans = layout_of(Moments(2, 1), table).spans
    assert spans[0][0] == 500
    assert spans[-1][1] == 19_700
    assert all(start % 1000 == 0 for start, _ in spans[1:])


@example(m=741_456, flops=9763242.0)
@given(m=st.integers(1, 10**10), flops=st.floats(0, 1e9))
def test_spans_are_neither_too_small_nor_too_many(m: int, flops: float) -> None:
    rows = span_rows(m, flops)
    # A few rows may be shared by two threads; else spans keep within a factor of sqrt 2 of 4,096 rows, or above.
    assert rows >= min(m // 2, 2896)
    assert m // rows <= 16_384  # what is left over makes the last span longer


@given(m=st.integers(3000, 60_000))
def test_few_heavy_rows_are_cut_into_a_power_of_two(m: int) -> None:
    shares = m // span_rows(m, 1e6)
    assert shares >= 2
    assert shares & (shares - 1) == 0


def test_heavier_rows_make_shorter_spans_and_blocks() -> None:
    spans = [span_rows(10**7, flops) for flops in (1e3, 1e5, 1e7)]
    assert all(a >= b for a, b in pairwise(spans))
    assert block_rows(lambda rows: 8 * rows) == 8192
    assert block_rows(lambda rows: 8 * rows, flops_per_row=100.0) == 16_384
    assert block_rows(lambda rows: 1 << 40) == 2048


# ------------------------------------------------------------------------------------------------------------ threads
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_first_error_of_a_task_is_raised_and_the_rest_not_begun(threads: int) -> None:
    begun: list[int] = []
    failed = threading.Event()

    def task(leaf: int) -> int:
        begun.append(leaf)
        if leaf == 3:
            failed.set()
            raise RuntimeError("leaf 3")
        if leaf > 3:
            # On a busy machine the other threads would do all leaves before the error of this one is noticed.
            failed.wait()
            time.sleep(0.02)
        return leaf

    with pytest.raises(RuntimeError, match="leaf 3"):
        ThreadExecutor(threads)._run(1_000, task, lambda leaf, value: None)
    assert len(begun) < 1_000


def test_results_do_not_pile_up() -> None:
    """At most twice the threads are outstanding."""
    lock, running, most = threading.Lock(), 0, 0

    def task(leaf: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)

    def done(leaf: int, _: None) -> None:
        nonlocal running
        with lock:
            running -= 1

    ThreadExecutor(2)._run(200, task, done)
    assert most <= 4


def test_an_array_in_memory_is_one_table_whatever_the_threads() -> None:
    X = np.random.default_rng(0).standard_normal((30_000, 2))
    table = open_table(X, X[:, 0])
    work = normal_equations(X, 8)
    layout = layout_of(work, table)
    states = [ThreadExecutor(t).reduce(work, table, layout, lambda rows: None) for t in (1, 2, 3)]
    for state in states[1:]:
        for name in state:
            assert state[name].tobytes() == states[0][name].tobytes()
